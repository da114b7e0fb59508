"""The command ``hwprof`` in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def hwprof(*arguments: str, cwd: Path, columns: int = 80) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "hwprof", *arguments],
        cwd=cwd,
        env={**os.environ, "COLUMNS": str(columns)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
