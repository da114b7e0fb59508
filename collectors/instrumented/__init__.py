"""Counts without a PMU, by following the code itself: exact instructions, FLOPs, loads and stores per basic block."""
