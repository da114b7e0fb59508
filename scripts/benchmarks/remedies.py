"""What findings promise, and what their remedies bring: `hwprof collect --try` of models.

    python -m scripts.benchmarks.remedies [--only NAME ...] [--time 300] [--runs FOLDER]

With --runs, a model whose run is in FOLDER already is not done again.

A row is something to do of the first screen. The promise is the finding's: what could be won, from nothing (or what the
remedy is known to remove) to all that the cause takes. It is kept where the measured gain lies in it; within the error
where only its 95% interval reaches there; broken where not even that: a remedy that makes the model slower breaks a
promise, and so does one that wins more. Where the interval is wider than 10 points to either side nothing is known, and
nothing counted. What nobody can try by machine has no row. The second table has every remedy and combination.
"""

from __future__ import annotations

import argparse
import math
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from hwprof.report.document.findings import Action, Findings
from hwprof.report.json.kept import document_of
from hwprof.run.directory import RunDirectory
from hwprof.run.trials import Change, Trial
from scripts.benchmarks.tables import Part, Table, write

ROOT: Final = Path(__file__).parents[2]
MODELS: Final[Mapping[str, Sequence[str]]] = {
    "yolov7": ("--model", "yolov7"),
    "yolov8n": ("--model", "yolov8n"),
    "encoder": ("--model", "tests.support.models.sequences:encoder"),
    "lstm": ("--model", "tests.support.models.sequences:lstm"),
    **{
        name: ("--model", f"tests.support.models.causes:{name}", "--iterations", "10")
        for name in ("page_faults", "layouts", "scalar_pooling", "reordered_weights", "tiny_layers", "denormal_fed")
    },
}
WIDE: Final = 0.1
KEPT, WITHIN, BROKEN, NOT_KNOWN = "kept", "within the error", "broken", "not known"
FIRST: Final = 4
"""So many things to do has the first screen."""


class Promise(NamedTuple):
    """Of a finding's remedy: what could be won, and what was."""

    action: Action
    change: Change

    @property
    def verdict(self) -> str:
        """``KEPT``, ``WITHIN`` or ``BROKEN``; ``NOT_KNOWN`` where the interval is too wide for any. Of what is promised
        in whole percents, as it is shown."""
        low, high = math.floor(100 * self.action.gain_low) / 100, math.ceil(100 * self.action.gain_high) / 100
        if self.change.high - self.change.low > 2 * WIDE:
            return NOT_KNOWN
        if low <= -self.change.value <= high:
            return KEPT
        return WITHIN if -self.change.high <= high and -self.change.low >= low else BROKEN


def _try(name: str, seconds: float, place: Path) -> None:
    command = [sys.executable, "-P", "-m", "hwprof", "collect", *MODELS[name], f"--try={seconds:g}"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{name}: {done.stderr.strip().splitlines()[-1:]}")
    print(done.stdout, file=sys.stderr)


def _promises(found: Findings) -> list[Promise]:
    promising = [one for one in found.actions if one.causes]  # what was only asked for promises nothing
    measured = [one for one in promising if one.tried is not None and one.tried.inference is not None]
    return [Promise(one, one.tried.inference) for one in measured if one.tried and one.tried.inference][:FIRST]


def _change(change: Change) -> str:
    return f"{change.value:+.1%} ({change.low:+.1%} to {change.high:+.1%})"


def _row(name: str, one: Promise) -> list[str]:
    promised = f"{one.action.gain_low:.0%} to {one.action.gain_high:.0%}"
    return [name, one.action.title, "; ".join(one.action.causes), promised, _change(one.change), one.verdict]


def _trial(name: str, one: Trial) -> list[str]:
    if one.inference is None:
        return [name, " + ".join(one.titles), f"not tried: {one.reason}", "", ""]
    memory = ""
    if one.peak_bytes is not None and one.peak_without_bytes is not None:
        memory = f"{one.peak_bytes / one.peak_without_bytes - 1:+.0%}"
    differ = "" if one.outputs is None else f"{one.outputs.largest:.0e}"
    return [name, " + ".join(one.titles), _change(one.inference), memory, differ]


def main() -> None:
    """Measures and writes the page."""
    parser = argparse.ArgumentParser(
        prog="python -m scripts.benchmarks.remedies",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", choices=MODELS, action="append", help="|".join(MODELS))
    parser.add_argument("--time", type=float, default=300.0, help="for the trials of a model, in seconds")
    parser.add_argument("--runs", type=Path, metavar="FOLDER", help="keep the runs there, a folder a model")
    parser.add_argument("--output", type=Path, default=Path("results/remedies.md"))
    options = parser.parse_args()
    promises: list[tuple[str, Promise]] = []
    trials: list[list[str]] = []
    for name in options.only or MODELS:
        with tempfile.TemporaryDirectory() as temporary:
            place = Path(temporary) if options.runs is None else options.runs.absolute() / name
            place.mkdir(parents=True, exist_ok=True)
            if not (place / "results").exists():
                _try(name, options.time, place)
            found = document_of(RunDirectory.latest(place / "results")).part(Findings)
            assert found is not None
        promises += [(name, one) for one in _promises(found)]
        trials += [_trial(name, one) for one in (found.trials.rows if found.trials is not None else ())]
    verdicts = Counter(one.verdict for _, one in promises)
    rows = [_row(name, one) for name, one in promises]
    known = len(promises) - verdicts[NOT_KNOWN]
    share = 100 * (verdicts[KEPT] + verdicts[WITHIN]) / known if known else 0.0
    sums = [
        ["promises that were kept, or within the error, %", f"{share:.0f}"],
        ["promises of which that is known", str(known)],
    ]
    summary = Part(
        "Promises", ["", "found"], [*sums, *([name, str(verdicts[name])] for name in (KEPT, WITHIN, BROKEN, NOT_KNOWN))]
    )
    columns = ["model", "remedy", "causes", "could win", "change of the inference's time", "promise"]
    every = Part("All that was tried", ["model", "remedies", "change (95%)", "peak memory", "outputs differ"], trials)
    note = (__doc__ or "").partition("\n\n    ")[0]
    write(Table("Remedies that were tried", columns, rows, note, (summary, every)), options.output)


if __name__ == "__main__":
    main()
