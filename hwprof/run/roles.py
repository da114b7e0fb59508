"""What a collector measures: by its role, and not by its name, others find it."""

from __future__ import annotations

from enum import Enum


class Role(Enum):
    """What kind of data a collector brings."""

    COUNTER = "counter"  # reads event counts at the edges of spans
    SAMPLER = "sampler"  # samples of code, by thread
    OPERATORS = "operators"  # the framework's operators
    PRIMITIVES = "primitives"  # a library's primitives and their implementations
    PYTHON = "python"  # call stacks of Python's functions
    CALLS = "calls"  # calls of Python's functions, one by one
    LINES = "lines"  # costs of lines of Python
    MEMORY = "memory"
    ENERGY = "energy"
    DRAM = "dram"  # traffic of the memory controllers
    OTHER = "other"
