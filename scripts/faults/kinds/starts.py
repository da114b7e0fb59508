"""Several that measure, begun at the same moment in the same folder."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Final

from scripts.faults.case import Case
from scripts.faults.kinds.collects import FACTORY, LIMIT_BYTES

IMPORTS: Final = ""
LIMIT_S: Final = 240.0


def shared(root: Path) -> None:
    """Nothing."""


def case(random: Random, folder: Path, _: None) -> Case:
    """Two to ten of them, and a report afterwards."""
    (folder / "odd.py").write_text(FACTORY.format(fault="pass", at_start="pass"))
    beside = random.choice((1, 2, 4, 9))
    passes = random.choice(("measure", "trace"))
    arguments = ("collect", "--model", "odd:make", "--iterations", "1", "--no-peaks", "--passes", passes)
    return Case(
        f"{1 + beside} at once, {passes}",
        (*arguments, "--collectors", "memory", "--no-instrumented"),
        codes=frozenset({0}),
        limit_s=LIMIT_S,
        limit_bytes=LIMIT_BYTES,
        beside=beside,
        then=("report", "--all"),
    )
