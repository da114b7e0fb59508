"""Reproducible comparisons, side by side in one run; each writes a table into results/."""
