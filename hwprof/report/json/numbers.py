"""Figures as JSON has them: ten significant digits, which no measurement reaches; whole numbers all of theirs, and no
point."""

from __future__ import annotations

from typing import Any, Final

import msgspec

EXACT: Final = 1 << 53
"""Up to it a float holds every whole number."""


def encoded(value: Any) -> bytes:
    """What msgspec knows, as compact JSON."""
    return msgspec.json.encode(_plain(msgspec.to_builtins(value)))


def _plain(value: Any) -> Any:
    kind = type(value)
    if kind is float:
        return _without_point(value if value.is_integer() else float(f"{value:.10g}"))
    if kind is dict:
        return {key: _plain(one) for key, one in value.items()}
    if kind is list:
        return [_plain(one) for one in value]
    return value


def _without_point(value: float) -> float:
    return int(value) if value.is_integer() and -EXACT < value < EXACT else value
