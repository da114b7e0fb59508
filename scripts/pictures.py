"""The README's pictures, from a real run: the report as a terminal shows it, and the trace in the Perfetto UI.

    python -m scripts.pictures results/RUN

Needs chromium and the extras ``dev``. The report becomes an SVG, the UI a screenshot.
"""

from __future__ import annotations

import argparse
import io
import shutil
import sys
from pathlib import Path

from rich.console import Console

from hwprof.report.document import builder
from hwprof.report.text import report
from hwprof.run.directory import RunDirectory

WIDTH = 120
HEIGHT = 1700
"""Of the UI: all pinned tracks at once."""
DOCS = Path("docs")


def _report(run: RunDirectory, target: Path) -> None:
    console = Console(record=True, width=WIDTH, force_terminal=True, file=io.StringIO())
    report.render(builder.build(run, top=12, sort="time"), console)
    target.write_text(console.export_svg(title="hwprof collect --model yolov7"), encoding="utf-8")


def _user_interface(run: RunDirectory, target: Path) -> None:
    from hwprof.trace import initial_view, viewer
    from tests.support.perfetto import ui

    chromium = shutil.which("chromium")
    if chromium is None:
        sys.exit("needs chromium")
    with viewer.TraceServer(run.path / "trace.pftrace", offline=True) as server:
        shown = ui.look(chromium, server.url(initial_view.parameters(run)), target, height=HEIGHT)
    print(f"{shown.slices} slices, pinned: {', '.join(shown.pinned)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    run = RunDirectory.open(parser.parse_args().run)
    DOCS.mkdir(exist_ok=True)
    _report(run, DOCS / "report.svg")
    _user_interface(run, DOCS / "perfetto.png")


if __name__ == "__main__":
    main()
