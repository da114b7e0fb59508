"""Counts without a PMU, of instrumented code: exact instructions, FLOPs, loads and stores per basic block."""
