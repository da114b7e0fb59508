"""Every collector passes the suite that comes with the contract, each in a process of its own."""

from __future__ import annotations

import subprocess
import sys

import pytest

from hwprof.collector import registry


@pytest.mark.parametrize("name", registry.names())
def test_it_conforms(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "hwprof.collector.conformance", name], capture_output=True, text=True, timeout=300
    )
    assert (done.returncode, done.stdout.splitlines()[-1:]) == (0, [f"{name}: conforms"]), done.stdout + done.stderr
