"""Where hwprof's own code and torch's lie here: their functions stand on every stack, and are not the pipeline's."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

import hwprof

FRAMEWORK: Final = "torch"

PIPELINE: Final = "workload"
"""What hwprof runs, as the user's own pipeline would; of it these are the profiler's."""

CALLING: Final = ("layer_hooks.py", "protocol.py", "user_module.py")
"""Hooks, and how a user's own model is called."""

COLLECTORS: Final = Path(__file__).parents[1]


def profiler_paths() -> list[str]:
    """Files and folders."""
    package = Path(hwprof.__file__).parent
    own = [path for path in sorted(package.iterdir()) if path.name not in (PIPELINE, "__pycache__")]
    return [str(path) for path in (*own, *(package / PIPELINE / name for name in CALLING), COLLECTORS)]


def framework_paths() -> list[str]:
    """No folder where it is not loaded."""
    loaded = sys.modules.get(FRAMEWORK)
    return [str(Path(loaded.__file__).parent)] if loaded is not None and loaded.__file__ else []
