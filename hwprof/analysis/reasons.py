"""Why a figure is not there."""

from __future__ import annotations

import msgspec


class Missing(msgspec.Struct, frozen=True):
    """Something that was not measured, why, and what would change it (if that is known)."""

    what: str
    reason: str
    remedy: str | None = None
