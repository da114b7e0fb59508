"""Runs every benchmark that has a bar, and says which figures fall short; the exit code is 1 if any does.

    python -m scripts.benchmarks [--quick] [--only NAME] [--keep-pages]

Each benchmark writes its page into results/, and results/bars.md holds figure, bar and verdict. With --quick all of it
takes about five minutes: enough to see a bar missed by far, and no figure to publish, so the benchmarks' own pages go
to a temporary folder. --keep-pages runs nothing and evaluates the pages in results/ as they are.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from scripts.benchmarks.bars import Benchmark, Outcome, declared, evaluate
from scripts.benchmarks.tables import Table, write

RESULTS = Path("results")


def _run(name: str, arguments: list[str], page: Path) -> str | None:
    """Runs one benchmark; None, or why there is no page."""
    command = [sys.executable, "-m", f"scripts.benchmarks.{name}", *arguments, "--output", str(page)]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        return (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
    return None


def _outcomes(name: str, benchmark: Benchmark, arguments: list[str] | None, folder: Path) -> list[Outcome]:
    """Of one benchmark, run with the arguments, or with None from the page that is there."""
    page = folder / f"{name}.md"
    if arguments is not None:
        print(f"{name}: running {' '.join(arguments)}".rstrip(), file=sys.stderr, flush=True)
        begin = time.monotonic()
        problem = _run(name, arguments, page)
        print(f"{name}: {problem or 'done'} after {time.monotonic() - begin:.0f} s", file=sys.stderr, flush=True)
        if problem is not None:
            return [Outcome(bar, None) for bar in benchmark.bars]
    return evaluate(benchmark.bars, page.read_text(encoding="utf-8") if page.exists() else "")


def _row(name: str, outcome: Outcome) -> list[str]:
    figure = "" if outcome.figure is None else f"{outcome.figure:g} {outcome.bar.unit}"
    return [outcome.bar.name, figure, outcome.bar.text(), outcome.verdict, name]


def main() -> int:
    """The exit code."""
    benchmarks = declared()
    parser = argparse.ArgumentParser(
        prog="python -m scripts.benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--quick", action="store_true", help="fewer rounds; benchmarks that have no short form are left out"
    )
    parser.add_argument("--only", metavar="NAME", choices=benchmarks, action="append", help="|".join(benchmarks))
    parser.add_argument("--keep-pages", action="store_true", help="run nothing: evaluate the pages in results/")
    parser.add_argument("--output", type=Path, default=RESULTS / "bars.md")
    options = parser.parse_args()
    rows: list[list[str]] = []
    short = False
    with tempfile.TemporaryDirectory() as temporary:
        for name in options.only or benchmarks:
            benchmark = benchmarks[name]
            if options.quick and benchmark.quick is None:
                print(f"{name}: has no short form, left out", file=sys.stderr)
                continue
            arguments = None if options.keep_pages else [*(benchmark.quick or ())] if options.quick else []
            folder = Path(temporary) if options.quick and not options.keep_pages else RESULTS
            for outcome in _outcomes(name, benchmark, arguments, folder):
                rows.append(_row(name, outcome))
                short = short or outcome.verdict != "met"
    note = (
        "Quick: few rounds, no figures to publish." if options.quick else "The benchmarks' pages stand beside this one."
    )
    write(Table("Bars", ["figure", "is", "bar", "", "benchmark"], rows, note), options.output)
    return 1 if short else 0


if __name__ == "__main__":
    sys.exit(main())
