"""Of a fresh process no library was deleted; one that ran other tests may have loaded some that are gone."""

from __future__ import annotations

import subprocess
import sys

PRINTS_THEM = "from collectors.instrumented.deleted_libraries import deleted_libraries; print(deleted_libraries())"


def test_a_fresh_process_has_none() -> None:
    done = subprocess.run([sys.executable, "-c", PRINTS_THEM], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr
