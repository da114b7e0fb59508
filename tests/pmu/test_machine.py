"""The emulated machine itself."""

from __future__ import annotations

import subprocess

from tests.pmu.machine import PMU_VM
from tests.support.requirements import require_tool


def test_the_emulated_pmu_counts_what_it_should() -> None:
    require_tool("qemu-system-aarch64")
    require_tool("mkfs.ext4")
    done = subprocess.run([str(PMU_VM), "selftest"], capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "PMU self-test: passed" in done.stdout
    assert "FAIL" not in done.stdout
