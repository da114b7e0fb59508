"""Remedies are tried: the same workload with and without them, in fresh processes, in turn."""
