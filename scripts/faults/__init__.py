"""Hostile and broken input, faults and limits, in great numbers: ``python -m scripts.faults``."""
