"""Asking for events on a recorded machine, as a run does."""

from __future__ import annotations

from pathlib import Path

from hwprof.hardware.countable import Countable, Selection
from hwprof.hardware.machine import read_machine
from hwprof.hardware.selection import select
from tests.support.recorded_machines import plant

ALDER_LAKE, ZEN2, ZEN4, SPR, N2 = "intel-alder-lake", "amd-zen2", "amd-zen4", "intel-sapphire-rapids", "arm-neoverse-n2"


class Asking:
    """``select`` on a machine that is laid out below a folder."""

    def __init__(self, tree: str, root: Path) -> None:
        self.root = plant(tree, root)
        self.machine = read_machine(self.root, "aarch64" if tree == N2 else "x86_64", has_core_pmu=True)

    def __call__(self, *names: str, on: range | None = None) -> Selection:
        return select(names or None, self.machine, self.root, on)


def hardware(found: Selection) -> dict[str, Countable]:
    return {event.name: event for event in found.events if event.kind == "hardware"}
