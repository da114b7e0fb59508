"""hwprof's command line in the guest, which has its sources, not an installed package:
``python3 -m tests.pmu.guest.command ARGUMENT...``."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path


def register() -> None:
    """The package's entry points, as an installed package has them, in the working directory."""
    information = Path("hwprof-0.dist-info")
    if information.exists():
        return
    points = tomllib.loads(Path("pyproject.toml").read_text())["project"]["entry-points"]["hwprof.collectors"]
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: hwprof\nVersion: 0\n")
    lines = [f"{name} = {value}" for name, value in points.items()]
    (information / "entry_points.txt").write_text("[hwprof.collectors]\n" + "\n".join(lines) + "\n")


def main() -> int:
    from hwprof.cli.app import run

    register()
    return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
