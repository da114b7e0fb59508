"""Counting with perf_event_open: groups of events on every thread, read at the edges of layers."""
