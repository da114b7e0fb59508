"""The program that Scalene runs: hwprof's worker, as ``python -P -m MODULE ARGUMENTS`` would run it.

Scalene runs files, and puts their folder where modules are looked for first; nothing is to be found there.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path


def main() -> None:
    """``sys.argv``: this file, the interpreter and its flags, ``-m``, the module and its arguments."""
    here = str(Path(__file__).parent)
    sys.path[:] = [folder for folder in sys.path if folder not in (here, "")]
    arguments = sys.argv[sys.argv.index("-m") + 1 :]
    sys.argv = arguments
    runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
