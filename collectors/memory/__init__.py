"""Resident memory, proportional memory and page faults of the worker over time."""
