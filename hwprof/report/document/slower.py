"""How many times as long iterations took in which somebody looked closely."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from hwprof.analysis import slower


class Slower(msgspec.Struct, kw_only=True, frozen=True):
    """As those that times are from: the median, and the least and most."""

    median: float
    least: float
    most: float


def built(found: slower.Slower | None) -> Slower | None:
    """None where it is not known."""
    return Slower(**found._asdict()) if found is not None else None
