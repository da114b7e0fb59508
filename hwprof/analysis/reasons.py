"""Why a figure is not there."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from hwprof.unavailable import Unavailable

AGAIN: Final = "collect again"

NO_SAMPLES: Final = Unavailable("no completed pass took samples", "collect with --passes measure,trace")


@dataclass(frozen=True)
class Missing(Unavailable):
    """Something that was not measured, why, and what would change it (if that is known)."""

    what: str = field(kw_only=True)
