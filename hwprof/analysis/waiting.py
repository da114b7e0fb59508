"""Which code waits: it takes processor time and does no work. Data: ``waiting.toml``."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

import msgspec

from hwprof.data_files import read_toml

if TYPE_CHECKING:
    import polars as pl

ANY: Final = "any"


class _File(msgspec.Struct, forbid_unknown_fields=True):
    domains: dict[str, str]
    functions: dict[str, dict[str, tuple[str, ...]]]


@cache
def _data() -> _File:
    return read_toml(__name__, "waiting.toml", _File)


@cache
def cause(domain: str | None, name: str | None) -> str | None:
    """What a function waits for, by the domain of its code; None of one that works, or that nobody knows."""
    known = _data().domains.get(domain or "")
    if known is not None or name is None:
        return known
    for group in (ANY, domain or ""):
        for found, begins in _data().functions.get(group, {}).items():
            if name.startswith(begins):
                return found
    return None


def causes(kernels: pl.DataFrame) -> list[str | None]:
    """Of each row with ``code`` (the domain) and ``name``."""
    return [cause(domain, name) for domain, name in kernels.select("code", "name").iter_rows()]
