"""How far a bound can be trusted."""

from __future__ import annotations

from typing import Final

HIGH: Final = "high"
MEDIUM: Final = "medium"
LOW: Final = "low"
