"""``hwprof`` and ``python -m hwprof``."""

from __future__ import annotations

import sys


def main() -> None:
    """Runs the command line and ends the process with its exit code."""
    from hwprof.cli.app import run
    from hwprof.cli.streams import prepare

    prepare()
    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
