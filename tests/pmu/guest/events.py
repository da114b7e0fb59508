"""Runs ``hwprof events`` in the guest: ``python3 -m tests.pmu.guest.events [OPTIONS]``; leaves $OUT/events.json."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tests.pmu.guest.registration import register


def main() -> int:
    from hwprof.cli.app import run

    register()
    with (Path(os.environ["OUT"]) / "events.json").open("w") as file:
        os.dup2(file.fileno(), 1)
        status = run(["events", "--format", "json", *sys.argv[1:]])
        sys.stdout.flush()
    return status


if __name__ == "__main__":
    sys.exit(main())
