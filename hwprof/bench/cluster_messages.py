"""What the process that has Ray in it tells the one that started it, a line of JSON each."""

from __future__ import annotations

import msgspec


class Machines(msgspec.Struct, frozen=True, tag="machines"):
    """So many take part: the cases are given to them."""

    number: int


class Kept(msgspec.Struct, frozen=True, tag="kept"):
    """A case is done, and its result in the store."""

    key: str


class Refused(msgspec.Struct, frozen=True, tag="refused"):
    """It cannot go on."""

    message: str
    remedy: str | None


Message = Machines | Kept | Refused
