"""How large a trace may become."""

from __future__ import annotations

from typing import Final

SLICES: Final = 1_500_000
"""Of a trace, unless the user says another number: some 100 MB, which the UI shows within ten seconds."""

MOST: Final = 1_000_000_000
"""That a user can mean."""
