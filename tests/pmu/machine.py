"""Runs a job of the tests inside the emulated machine that has a PMU (``scripts/pmu_vm``)."""

from __future__ import annotations

import compileall
import hashlib
import os
import py_compile
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

from tests.support.requirements import missing, require_tool

REPOSITORY: Final = Path(__file__).resolve().parents[2]
PMU_VM: Final = REPOSITORY / "scripts/pmu_vm/pmu_vm.sh"
CACHE: Final = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hwprof-tests"

SOURCES: Final = (
    "hwprof",
    "collectors",
    "tests/__init__.py",
    "tests/support/__init__.py",
    "tests/support/papi_beside_perf.py",
    "tests/support/reported.py",
    "tests/support/requirements.py",
    "tests/support/worker_thread.py",
    "tests/pmu",
    "pyproject.toml",
)
"""What the guest gets of the repository, at /lab/src, which is the job's working directory."""

GUEST_REQUIREMENTS: Final = ("polars", "numpy", "msgspec", "orjson", "click", "rich", "pyelftools")
GUEST_PYTHON: Final = "3.11"
PLATFORMS: Final = (
    "manylinux_2_28_aarch64",
    "manylinux_2_27_aarch64",
    "manylinux_2_17_aarch64",
    "manylinux2014_aarch64",
)

TIMEOUT_S: Final = 1200
"""Ends a guest that hangs; the longest job takes a minute on a quiet machine, and five times that on a busy one."""

Results = dict[str, dict[str, Any]]
"""What jobs of the guest found, by their names."""


def run_in_vm(
    args: Sequence[str],
    *,
    out: Path,
    torch: bool = False,
    user: bool = False,
    paranoid: int | None = None,
    cpu: str | None = None,
    env: Mapping[str, str] | None = None,
    timeout_s: int = TIMEOUT_S,
) -> subprocess.CompletedProcess[str]:
    """Boots the guest, runs ``args`` in it, and returns its exit status and output (stdout; the machine's own talk is
    stderr).

    What the job writes into $OUT (/lab/out) is in ``out`` afterwards. ``torch`` adds the disk with PyTorch, ``user``
    runs the job as uid 1000, ``paranoid`` sets kernel.perf_event_paranoid, ``cpu`` is QEMU's processor
    ("neoverse-n1,pmu=off" has no PMU). Skips the test, or fails it in CI, where QEMU or the guest's wheels are missing.
    """
    require_tool("qemu-system-aarch64")
    require_tool("mkfs.ext4")
    require_tool("debugfs")
    options = ["-o", str(out), "-w", str(guest_wheels()), "-t", str(timeout_s)]
    options += [] if torch else ["-T"]
    options += ["-u"] if user else []
    options += ["-p", str(paranoid)] if paranoid is not None else []
    options += ["-c", cpu] if cpu else []
    for name, value in (env or {}).items():
        options += ["-e", f"{name}={value}"]
    return subprocess.run(
        [str(PMU_VM), "run", "-d", staged().name, *options, "--", *args],
        env={**os.environ, "PMU_VM_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        timeout=timeout_s + 600,  # the first run builds the machine
        check=False,
    )


@cache
def staged() -> tempfile.TemporaryDirectory[str]:
    """The sources for the guest, compiled, since compiling there is slow; any user may read them. They are there until
    the tests have ended."""
    kept = tempfile.TemporaryDirectory(prefix="hwprof-guest-")
    folder = Path(kept.name)
    folder.chmod(0o755)
    for source in SOURCES:
        origin, target = REPOSITORY / source, folder / source
        target.parent.mkdir(parents=True, exist_ok=True)
        if origin.is_dir():
            shutil.copytree(origin, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(origin, target)
    if f"{sys.version_info.major}.{sys.version_info.minor}" == GUEST_PYTHON:
        compileall.compile_dir(
            str(folder),
            stripdir=str(folder),
            prependdir="/lab/src",
            quiet=2,
            invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
        )
    return kept


def guest_wheels() -> Path:
    """A folder with the wheels that hwprof needs in the guest, fetched once for each set of versions."""
    constraints = REPOSITORY / "constraints.txt"
    tag = hashlib.sha256(constraints.read_bytes() + " ".join(GUEST_REQUIREMENTS).encode()).hexdigest()[:12]
    folder = CACHE / f"wheels-aarch64-{tag}"
    if folder.is_dir():
        return folder
    CACHE.mkdir(parents=True, exist_ok=True)
    part = Path(tempfile.mkdtemp(prefix=f"{folder.name}.", dir=CACHE))  # other tests may fetch them at the same time
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--dest", str(part), "--only-binary=:all:"]
    for platform in PLATFORMS:
        command += ["--platform", platform]
    command += ["--python-version", GUEST_PYTHON, "--implementation", "cp", "--constraint", str(constraints)]
    done = subprocess.run([*command, *GUEST_REQUIREMENTS], capture_output=True, text=True, check=False)
    if done.returncode:
        shutil.rmtree(part)
        missing(f"aarch64 wheels for the emulated machine ({done.stderr.strip().splitlines()[-1]})")
    try:
        part.replace(folder)
    except OSError:  # somebody else was first
        shutil.rmtree(part)
    return folder
