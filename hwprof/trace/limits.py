"""How large a trace may become."""

from __future__ import annotations

from typing import Final

SLICES: Final = 750_000
"""Of a trace, unless the user says another number: some 50 MB. The UI shows twice as much within ten seconds."""

ANNOTATED: Final = 7
"""As many operators' slices as a span takes that has annotations (a layer, a stage, an iteration): some 400 bytes."""

COUNTS_A_SLICE: Final = 4
"""Counts of such a span, by event and thread, that take as much as an operator's slice: each some 17 bytes."""

MOST: Final = 1_000_000_000
"""That a user can mean."""
