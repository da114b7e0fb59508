"""Figures as JSON has them: ten significant digits, which no measurement reaches; whole numbers all of theirs, and no
point."""

from __future__ import annotations

from typing import Any, Final

import msgspec

EXACT: Final = 1 << 53
"""Up to it a float holds every whole number."""

_PARTS: Final = frozenset({float, dict, list})
"""Of these something is to be made."""

_FIGURES: Final = frozenset({float, type(None)})
"""Of a column of figures."""


def encoded(value: Any) -> bytes:
    """What msgspec knows, as compact JSON."""
    return msgspec.json.encode(_plain(msgspec.to_builtins(value), {None: None}))


def _plain(value: Any, known: dict[float | None, float | None]) -> Any:
    """``known``: figures that were met, of which most are there many times."""
    kind = type(value)
    if kind is float:
        found = known.get(value)
        if found is None:
            found = known[value] = _rounded(value)
        return found
    if kind is dict:
        return {key: _plain(one, known) if type(one) in _PARTS else one for key, one in value.items()}
    if kind is list:
        if {*map(type, value)} <= _FIGURES:
            known.update((one, _rounded(one)) for one in {*value} - known.keys())
            return [known[one] for one in value]
        return [_plain(one, known) if type(one) in _PARTS else one for one in value]
    return value


def _rounded(value: float) -> float:
    found = value if value.is_integer() else float(f"{value:.10g}")
    return int(found) if found.is_integer() and -EXACT < found < EXACT else found
