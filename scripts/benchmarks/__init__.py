"""Reproducible comparisons, side by side in one run; each writes a table into results/."""

import os

os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # a user's Python keeps what it compiles; without, every start pays
