"""Runs ``hwprof collect`` with its defaults on every model of the zoo, and checks what must hold of any report.

    python -m scripts.zoo                    # all of them, and writes results/zoo.md
    python -m scripts.zoo lstm on_threads    # some

For each: it ends well; what its parts are counted with adds up to the whole; MACs add up; the processor time that is
accounted for is within 2% of the kernel's, or the report says that it could not tell. Exit status 1 where one does not
hold. The models: ``tests/support/models/zoo.py``.
"""

from __future__ import annotations

import argparse
import inspect
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import monotonic
from typing import Any, Final

from scripts.benchmarks import tables

ROOT: Final = Path(__file__).resolve().parents[1]
MODELS: Final = "tests.support.models.zoo"
CLOSE: Final = 0.02
"""Of the process's processor time: what may be missing or too much."""

EXACT: Final = 1e-9

TARGET: Final = ROOT / "results" / "zoo.md"


def names() -> list[str]:
    """The factories, in the module's order."""
    from tests.support.models import zoo

    found = inspect.getmembers(zoo, inspect.isfunction)
    own = [(function.__code__.co_firstlineno, name) for name, function in found if function.__module__ == MODELS]
    return [name for _, name in sorted(own) if not name.startswith("_")]


def collected(name: str, *options: str) -> tuple[dict[str, Any] | None, str]:
    """The report of a run with all defaults, or None and why not."""
    with tempfile.TemporaryDirectory() as place:
        command = [sys.executable, "-m", "hwprof", "collect", "--model", f"{MODELS}:{name}", "--format", "json"]
        done = subprocess.run(
            [*command, "--output", place, *options], capture_output=True, text=True, check=False, cwd=ROOT
        )
    if done.returncode:
        return (
            None,
            f"exit {done.returncode}: {done.stderr.strip().splitlines()[-1][:200] if done.stderr.strip() else ''}",
        )
    found: dict[str, Any] = json.loads(done.stdout)
    return found, ""


def wrong(report: dict[str, Any]) -> Iterator[str]:
    """What of a report contradicts itself."""
    failed = [one["name"] for one in report["passes"] if one["status"] != "completed"]
    if failed:
        yield f"failed: {', '.join(failed)}"
    yield from _sums(report["layers"], report["notes"])
    closure = report["cpu_time"]
    if closure is None:
        yield "nothing accounted for"
    elif closure["resolved"] and not _explained(closure, report["notes"]):
        yield f"{closure['accounted_for']:.1%} of CPU time accounted for"


def _explained(closure: dict[str, Any], notes: list[str]) -> bool:
    """Whether CPU time is accounted for within its error, or a note says what was not counted."""
    share = closure["accounted_for"]
    told = share < 1 and any("CPU time was not counted" in note for note in notes)
    return bool(abs(share - 1) <= CLOSE + closure["error"] or told)


def _sums(layers: dict[str, Any], notes: list[str]) -> Iterator[str]:
    """What does not add up to the whole."""
    called = [row for row in layers["rows"] if row["calls"]]
    parts = [*called, *([layers["unattributed"]] if layers["unattributed"] else [])]
    whole = layers["whole"]
    if any(part["share"] is None for part in parts):
        if not layers["irregular"]:
            yield "shares are missing"
    elif abs(sum(part["share"] for part in parts) - 1) > EXACT:
        yield f"shares add up to {sum(part['share'] for part in parts):.1%}"
    macs = [row["macs"] for row in called]
    if whole["macs"] is not None and None not in macs and sum(macs) != whole["macs"]:
        yield f"{sum(macs)} MACs of {whole['macs']}"
    if any("overlap in time" in note for note in notes):
        return  # layers side by side: told, and their counts are in several of them
    counters, paths = layers["counters"], {part["path"] for part in parts}
    for event, column in counters["events"].items():
        values = dict(zip(counters["of"], column.get("value", ()), strict=False))
        of_whole = values.pop(whole["path"], None)
        found = [value for path, value in values.items() if path in paths]
        known = None not in found and of_whole is not None
        if known and column["iterations"] == 1 and sum(found) != of_whole:  # others are medians
            yield f"{event}: {sum(found):.6g} of {of_whole:.6g}"


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", help="of the zoo; all by default")
    chosen = parser.parse_args(arguments).models or names()
    rows, bad = [], 0
    for name in chosen:
        begin = monotonic()
        report, why = collected(name)
        found = [why] if report is None else list(wrong(report))
        bad += bool(found)
        rows.append(_row(name, report, found))
        print(f"{name:22} {monotonic() - begin:5.0f} s  {'; '.join(found) or 'ok'}", flush=True)
    held = f"{len(chosen) - bad} of {len(chosen)} reports hold"
    print(held)
    if chosen == names():
        note = f"{held}. Time: median of an inference; own and unattributed: shares of its time that no layer has."
        columns = ["model", "ms", "MACs", "own code", "unattributed", "CPU time accounted for", "report"]
        tables.write(tables.Table("A zoo of models through `hwprof collect`", columns, rows, note), TARGET)
    return 1 if bad else 0


def _row(name: str, report: dict[str, Any] | None, found: list[str]) -> list[str]:
    if report is None:
        return [name, *["–"] * 5, "; ".join(found)]
    layers, closure = report["layers"], report["cpu_time"]
    return [
        name,
        f"{layers['whole']['time']['median_ns'] / 1e6:.2f}",
        f"{layers['whole']['macs']:,}" if layers["whole"]["macs"] is not None else "–",
        f"{sum(row['share'] or 0 for row in layers['rows'] if row['own']):.1%}",
        f"{(layers['unattributed'] or {}).get('share') or 0:.1%}",
        f"{closure['accounted_for']:.1%}" if closure and closure["resolved"] else "–",
        "; ".join(found) or "holds",
    ]


if __name__ == "__main__":
    sys.exit(main())
