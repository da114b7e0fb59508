"""Scalene's command line, and what must be in the environment so that it need not start the program once more."""

from __future__ import annotations

import dis
import importlib.util
import os
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from collectors.scalene import run_worker
from collectors.shared.python_origins import FRAMEWORK, profiler_paths

PROFILE: Final = "scalene.json"
PACKED: Final = "scalene.json.gz"
"""As it is kept: some 20 MB become 2."""

WINDOW_BYTES: Final = 1 << 20
"""Allocated, between two samples of memory; Scalene's own default."""

PRELOADED: Final = "libscalene.so"

TEMPORARY: Final = "tmp"
"""In the raw folder: where Scalene puts scripts that stand for Python in child processes. Gone afterwards."""

ITS_OWN: Final = (threading.__file__, dis.__file__)
"""Where Scalene's threads wait, and what it looks at code with."""


def package() -> Path | None:
    """Where Scalene lies; None: it is not installed."""
    return _folder_of("scalene")


def environment() -> Mapping[str, str]:
    """Of the worker: Scalene's library stands before the allocator, from the start."""
    folder = str(package() or "")
    libraries, preloaded = os.environ.get("LD_LIBRARY_PATH"), os.environ.get("LD_PRELOAD")
    return {
        "SCALENE_ALLOCATION_SAMPLING_WINDOW": str(WINDOW_BYTES),
        "LD_LIBRARY_PATH": f"{folder}:{libraries}" if libraries else folder,
        "LD_PRELOAD": f"{PRELOADED}:{preloaded}" if preloaded else PRELOADED,
    }


def command(raw: Path) -> list[str]:
    """What stands before the worker's own command. It begins switched off: building the model is no inference. What
    torch and hwprof do is the line's that calls them."""
    torch = _folder_of(FRAMEWORK)
    left_out = [*profiler_paths(), *([str(torch)] if torch else []), *ITS_OWN, f"{package()}/"]
    return [
        *("env", f"TMPDIR={raw / TEMPORARY}"),  # it becomes the worker, as Scalene does
        *(sys.executable, "-P", "-m", "scalene", "run", "--off", "--memory", "--no-async", "--no-stacks"),
        *("--profile-all", "--profile-exclude", ",".join(path for path in left_out if "," not in path)),
        *("--cpu-percent-threshold", "0", "--malloc-threshold", "0"),
        *("--allocation-sampling-window", str(WINDOW_BYTES)),
        *("--outfile", str(raw / PROFILE)),
        *(str(run_worker.__file__), "---"),
    ]


def _folder_of(module: str) -> Path | None:
    found = importlib.util.find_spec(module)
    return Path(found.origin).parent if found is not None and found.origin else None
