"""Instructions and simulated cache misses by valgrind's callgrind, which runs the worker on a processor of its own."""

from collectors.callgrind.collector import CallgrindCollector

__all__ = ["CallgrindCollector"]
