"""Counts without a PMU, by instrumenting the code: exact instructions, FLOPs, loads and stores per basic block."""

from collectors.instrumented.collector import InstrumentedCollector

__all__ = ["InstrumentedCollector"]
