"""Why a figure is not there."""

from __future__ import annotations

from dataclasses import dataclass, field

from hwprof.unavailable import Unavailable


@dataclass(frozen=True)
class Missing(Unavailable):
    """Something that was not measured, why, and what would change it (if that is known)."""

    what: str = field(kw_only=True)
