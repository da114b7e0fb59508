"""The core's frequency on this machine: two ways to it agree, and it is in every pass."""

from __future__ import annotations

import platform
from statistics import median

import pytest

from collectors.core_clock.collector import ALIKE, CoreClockCollector
from tests.support.requirements import missing

pytestmark = pytest.mark.alone


def test_chains_of_multiplications_and_additions_agree() -> None:
    if not CoreClockCollector().availability().ok:
        missing("a time stamp counter of constant rate")
    from collectors.core_clock.probe import Probe
    from collectors.shared.time_stamp_counter import TickLength

    length, probe = TickLength(), Probe()
    found = [probe() for _ in range(50)]
    assert median(abs(one / other - 1) for one, other in found) < ALIKE
    ghz = length.ticks_per_ns() * median(one for one, _ in found)
    assert 0.4 < ghz < 7, f"no core of {platform.machine()} runs at {ghz} GHz"
