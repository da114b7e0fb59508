"""Values that nobody measures: of another type, huge, negative, none, hostile to terminals."""

from __future__ import annotations

from random import Random
from typing import Any, Final

TEXTS: Final = (
    "", " ", "\x1b[2J\x1b[31mred", "a\nhwprof: forged", "\r\x08\x07", "../../../etc/passwd", "/dev/zero", "~nouser",
    "*", "[1]", "{0}", "%s%n", "\u202egnp.exe", "\ud800", "é" * 300, "x" * 100_000, "[bold red]x[/]", "=1+1", '"',
    "<b>", "nan", "-1", "0x10", "1e400", "\0", "\u2028", "model.0", "measure",
)  # fmt: skip
NUMBERS: Final = (
    0, -1, 1, 2, 255, 1 << 31, -(1 << 31), (1 << 63) - 1, -(1 << 63), 1 << 64, 10**40, 0.0, -0.0, 1e-320, 1e308, -1e308,
    float("inf"), float("-inf"), float("nan"), 0.1, 1.0,
)  # fmt: skip


def odd_value(random: Random, before: Any) -> Any:
    """Another value; often of the same type, which gets further."""
    if random.random() < 0.6:
        if isinstance(before, bool):
            return not before
        if isinstance(before, str):
            return random.choice((*TEXTS, before * 2, before[::-1], before[:-1]))
        if isinstance(before, (int, float)):
            return random.choice((*NUMBERS, before + 1, -before, before * 1000, before // 7))
    others: tuple[Any, ...] = (None, True, [], {}, [before], {"a": before}, [None] * 3)
    return random.choice((*others, *TEXTS, *NUMBERS))
