"""The uncore collector: DRAM traffic of the whole machine, from the sockets' memory controllers."""

from collectors.uncore.collector import UncoreCollector

__all__ = ["UncoreCollector"]
