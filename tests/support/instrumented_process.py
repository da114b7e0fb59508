"""A fresh process in which code is followed: what a test has it do, and what it says at its end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

from tests.support.requirements import require_module

ROOT = Path(__file__).parents[2]

BEGIN = """
    import ctypes, json, msgspec, os, sys, threading
    from pathlib import Path
    import torch
    torch.set_num_threads({threads})
    torch.manual_seed(0)
    torch.rand(64, 64) @ torch.rand(64, 64)
    from collectors.instrumented.engine import Engine
    from collectors.instrumented.selftest import self_test
    from hwprof.errors import HwprofError

    def end(**said):
        print(msgspec.json.encode(said).decode(), flush=True)
        os._exit(0)
"""


def child(script: str, threads: int = 2, timeout_s: float = 600) -> dict[str, Any]:
    """What a fresh process says by ``end`` after the script."""
    require_module("frida")
    code = textwrap.dedent(BEGIN.format(threads=threads)) + textwrap.dedent(script)
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=os.environ | {"ONEDNN_JIT_PROFILE": "2"},
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    assert done.returncode == 0, f"ended with {done.returncode}: {done.stderr[-2000:]}"
    said: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return said
