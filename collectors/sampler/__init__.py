"""Sampling with perf_event_open: which code every thread of the worker was in, and when it was off-CPU."""
