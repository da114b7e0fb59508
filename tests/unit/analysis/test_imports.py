"""Copies are made of processes that have imported the analysis: a thread that an import started would be in none."""

from __future__ import annotations

import re
import subprocess
import sys

SAID = """
import importlib, pkgutil
from pathlib import Path
import hwprof.analysis, hwprof.report, hwprof.trace
for package in (hwprof.analysis, hwprof.report, hwprof.trace):
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        importlib.import_module(module.name)
print(*(Path(f"/proc/self/task/{one.name}/comm").read_text().strip() for one in Path("/proc/self/task").iterdir()))
"""


def test_no_module_makes_the_table_librarys_threads() -> None:
    """They are made by the first query, and a copy that asks another waits for them for ever."""
    done = subprocess.run([sys.executable, "-c", SAID], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.split() and re.findall(r"polars-\d\S*|tokio\S*|rayon\S*", done.stdout) == []
