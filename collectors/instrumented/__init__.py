"""Counts without a PMU, by following the code itself: exact instructions, FLOPs, loads and stores per basic block."""

from collectors.instrumented.collector import InstrumentedCollector

__all__ = ["InstrumentedCollector"]
