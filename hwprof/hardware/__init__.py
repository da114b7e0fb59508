"""The machine: processor, caches, PMUs, event catalogue."""
