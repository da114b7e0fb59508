"""The passes that collectors share, by name. A collector that needs a pass for itself names that one."""

from __future__ import annotations

from typing import Final

MEASURE: Final = "measure"
"""Times and counts, with as little else as possible: figures are from this pass."""

TRACE: Final = "trace"
"""Operators, samples, primitives: what gives the figures their reasons, and slows the work down."""

SHARED_PASSES: Final = (MEASURE, TRACE)
"""In the order in which they are done."""
