"""Random instruction sequences do the same instrumented as natively, and are counted as the processor executes them."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

from scripts.benchmarks.fuzzing import in_a_process
from tests.support.requirements import require_module, require_tool

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="code is instrumented on x86-64")

SEQUENCES = 600
"""A share of those of results/fuzzing.md, by other seeds."""


@pytest.mark.parametrize(("place", "seed"), [("near", 7001), ("far", 7002)])
def test_registers_flags_memory_and_counts(place: str, seed: int, tmp_path: Path) -> None:
    require_module("frida")
    for tool in ("as", "objcopy", "cc"):
        require_tool(tool)
    said = in_a_process(seed, SEQUENCES, place, 0, tmp_path / "progress")
    assert not isinstance(said, int), f"ended with {said} at sequence {(tmp_path / 'progress').read_text()}"
    assert [(difference.number, difference.what) for difference in said.differences] == []
    assert said.sequences == SEQUENCES
    assert said.instructions > 20 * SEQUENCES
