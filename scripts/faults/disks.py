"""Disks that are full or slow: a file system in memory with little room; a library between a process and its files."""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Final

from hwprof.c_compiler import compiler
from scripts.faults.case import Case

RESULTS: Final = "results"
SLOW_C: Final = Path(__file__).with_name("slow.c")
DELAY: Final = "HWPROF_FAULTS_DELAY_US"


@contextmanager
def small_disk(case: Case, folder: Path) -> Iterator[None]:
    """Where the case has a small one, it is what its results are kept on; only root may do that."""
    if case.disk_bytes is None:
        yield
        return
    place = folder / RESULTS
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={case.disk_bytes}", "tmpfs", str(place)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def may_mount() -> bool:
    """Whether there can be small disks here."""
    return os.geteuid() == 0


def slow_environment(case: Case) -> dict[str, str]:
    """What makes a case's accesses to files slow."""
    if not case.slow_s:
        return {}
    return {"LD_PRELOAD": str(_library()), DELAY: str(round(1e6 * case.slow_s))}


@cache
def _library() -> Path:
    folder = tempfile.mkdtemp(prefix="hwprof-faults-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    library = Path(folder) / "slow.so"
    subprocess.run([*compiler(), "-O2", "-shared", "-fPIC", "-o", str(library), str(SLOW_C), "-ldl"], check=True)
    return library
