"""What must hold in every case."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from scripts.faults.case import USUAL, Case, Outcome

DEFECTS: Final = ("Traceback (most recent call last)", "this is a defect of hwprof", "panicked at")
PROGRESS: Final = re.compile(r"\[[a-z0-9_, ]+\] ")
"""What begins the lines of who measures without a terminal."""

PRINTED: Final = frozenset("\n\t")


def contents(paths: Iterable[Path]) -> dict[Path, str]:
    """Of each file a digest; of what is none, what it is."""
    return {path: _content(path) for path in paths}


def _content(path: Path) -> str:
    if path.is_symlink() or not path.is_file():
        return "link" if path.is_symlink() else "gone" if not path.exists() else "no file"
    return hashlib.blake2b(path.read_bytes()).hexdigest()


def broken(case: Case, outcome: Outcome, before: Mapping[Path, str], outside: Iterable[str]) -> Iterator[str]:
    """What does not hold. ``before``: contents of ``case.unchanged``; ``outside``: what was written elsewhere."""
    if outcome.timed_out:
        yield f"it did not end within {case.limit_s:.0f} s"
    elif outcome.code not in case.codes:
        yield f"exit code {outcome.code}"
    yield from (f"{mark!r} on standard error" for mark in DEFECTS if mark in outcome.err)
    lines = [line for line in outcome.err.splitlines() if line.strip() and not PROGRESS.match(line)]
    if case.told and not outcome.timed_out and outcome.code and len(lines) != 1 and (lines or not outcome.unheard):
        yield f"{len(lines)} lines on standard error"
    if not outcome.code and any(line.startswith("hwprof: ") for line in lines):
        yield "a failure is told, and the exit code is 0"
    for name, text in (("standard output", outcome.out), ("standard error", outcome.err)):
        odd = sorted({one for one in text if not one.isprintable() and one not in PRINTED})
        if odd:
            yield f"{odd[:4]!r} on {name}"
    if outcome.peak_bytes > case.limit_bytes:
        yield f"{outcome.peak_bytes >> 20} MiB of memory"
    yield from (f"left a process: {one}" for one in outcome.left)
    yield from (f"did {one}" for one in outcome.events)
    yield from (f"wrote {one}" for one in outside)
    now = contents(before)
    yield from (f"changed {path.name}" for path, was in before.items() if now[path] != was)


def runs_missing(results: Path, outcomes: Sequence[Outcome]) -> str:
    """Of who started at the same moment each that succeeded has a run of its own."""
    runs = sum((folder / "run.json").exists() for folder in results.iterdir()) if results.exists() else 0
    ended = sum(not one.code for one in outcomes)
    return f"{runs} runs of {ended} that succeeded" if runs < ended else ""


def never_ended(results: Path, case: Case, outcomes: Sequence[Outcome]) -> Iterator[str]:
    """The passes that a run says are running though nobody killed who measured it: a full disk, say, is no reason."""
    if "RLIMIT_FSIZE" in case.limits or not all(one.code in USUAL for one in outcomes):
        return
    for file in results.glob("2*/run.json"):
        running = [one["name"] for one in json.loads(file.read_bytes())["passes"] if one["status"] == "running"]
        yield from (f"pass {name} is said to be running" for name in running)
