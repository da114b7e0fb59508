"""Does py-spy meet functions where they were, all through a long pass? A program whose functions note their own times.

    python -m scripts.python_clock --seconds 60 --rate 100

A function that is on a stack from one time to another is met by looks between them, the first of them late by a look's
distance on average (py-spy's distances are random), none of them early. Its clock is put on hwprof's by marks at the
beginning and at the end: were it off in the middle, the functions there would be early, or later than the others.
Exit status 1 if one is early by more than the clock's own error, is not met at all, or if the mean of a third is later
than a look's distance and four errors of the mean. Needs a quiet machine. Writes results/python_clock.md.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Final

import polars as pl

from collectors.pyspy.collector import PySpyCollector
from collectors.pyspy.declaration import RATE
from hwprof.collector.contract import PassContext
from scripts.benchmarks import tables

TARGET: Final = Path(__file__).resolve().parents[1] / "results" / "python_clock.md"

LONG_S: Final = (0.15, 0.4)
"""How long functions take: 15 mean distances of looks, so that none is missed by chance."""

THIRDS: Final = ("first", "middle", "last")

WIDE: Final = 4.0
"""So many errors of a mean are no chance."""


@dataclass(frozen=True)
class Stay:
    """A function on a thread's stack; nanoseconds on CLOCK_MONOTONIC."""

    tid: int
    function: str
    begin_ns: int
    end_ns: int


@dataclass(frozen=True)
class Lateness:
    """Of one call: by how much the looks that met it came after its begin and its end, in milliseconds."""

    begin_ms: float
    end_ms: float


# --- the program


def works(seconds: float) -> None:
    """Until so much time has gone by."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


def spins(seconds: float) -> None:
    """At work."""
    works(seconds)


def sleeps(seconds: float) -> None:
    """Off its processor."""
    time.sleep(seconds)


def calls(seconds: float) -> None:
    """At work in another function."""
    spins_within(seconds)


def spins_within(seconds: float) -> None:
    """As ``spins``, called, and with a name of its own: stays of one function that touch would be one."""
    works(seconds)


def run(seconds: float, rate_hz: int, folder: Path) -> None:
    """Two threads go through the functions; what they did goes to ``folder``, beside what py-spy met."""
    known: list[tuple[int, str, int, int]] = []
    end = time.monotonic() + seconds

    def go_through(functions: Sequence[Callable[[float], None]], seed: int, edge: Callable[[], None]) -> None:
        chance = random.Random(seed)
        while time.monotonic() < end:
            for function in functions:
                begin_ns = time.monotonic_ns()
                function(chance.uniform(*LONG_S))
                known.append((threading.get_native_id(), function.__name__, begin_ns, time.monotonic_ns()))
            edge()

    collector = PySpyCollector()
    collector.start(PassContext("trace", os.getpid(), os.getpid(), folder, {"pyspy_rate": rate_hz}))
    other = threading.Thread(target=go_through, args=([sleeps, spins], 1, lambda: None))
    other.start()
    go_through([spins, sleeps, calls], 0, collector.iteration_edge)
    other.join()
    collected = collector.stop()
    collected.tables["python_frames"].write_parquet(folder / "frames.parquet")
    (clock,) = collected.clocks
    said = {"known": known, "error_ns": clock.error_ns, "drift": clock.drift}
    (folder / "said.json").write_text(json.dumps(said), encoding="utf-8")


# --- what py-spy met


def met(frames: pl.DataFrame) -> list[Stay]:
    """From when to when a function was on a thread's stack, whatever its line."""
    found: list[Stay] = []
    rows = frames.sort("tid", "function", "begin_ns").select("tid", "function", "begin_ns", "end_ns")
    for tid, function, begin_ns, end_ns in rows.iter_rows():
        last = found[-1] if found else None
        if last is not None and (last.tid, last.function) == (tid, function) and begin_ns <= last.end_ns:
            found[-1] = Stay(tid, function, last.begin_ns, max(last.end_ns, end_ns))
        else:
            found.append(Stay(tid, function, begin_ns, end_ns))
    return found


def lateness(known: Sequence[Stay], found: Sequence[Stay]) -> list[Lateness | None]:
    """Of each call in order; None: no look met it. A call has the stay that shares the most time with it."""

    def shared_ns(one: Stay, other: Stay) -> int:
        return min(one.end_ns, other.end_ns) - max(one.begin_ns, other.begin_ns)

    told: list[Lateness | None] = []
    for call in known:
        alike = [stay for stay in found if (stay.tid, stay.function) == (call.tid, call.function)]
        best = max(alike, key=lambda stay: shared_ns(call, stay), default=None)
        if best is None or shared_ns(call, best) <= 0:
            told.append(None)
        else:
            begin_ms, end_ms = (best.begin_ns - call.begin_ns) / 1e6, (best.end_ns - call.end_ns) / 1e6
            told.append(Lateness(begin_ms, end_ms))
    return told


def mean_and_error(values: Sequence[float]) -> tuple[float, float]:
    """The mean and its standard error."""
    return fmean(values), stdev(values) / len(values) ** 0.5


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0, help="how long the pass is (60)")
    parser.add_argument("--rate", type=int, default=RATE, help=f"py-spy's looks in a second ({RATE})")
    parser.add_argument("--program", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.program is not None:
        run(options.seconds, options.rate, options.program)
        return 0
    with tempfile.TemporaryDirectory() as place:
        command = [sys.executable, "-m", "scripts.python_clock", "--program", place]
        command += ["--seconds", str(options.seconds), "--rate", str(options.rate)]
        subprocess.run(command, check=True)
        said = json.loads((Path(place) / "said.json").read_text(encoding="utf-8"))
        frames = pl.read_parquet(Path(place) / "frames.parquet")
    known = sorted((Stay(*row) for row in said["known"]), key=lambda call: call.begin_ns)
    return tell(known, lateness(known, met(frames)), said["error_ns"] / 1e6, said["drift"], options.rate)


def tell(known: Sequence[Stay], told: Sequence[Lateness | None], error_ms: float, drift: float, rate_hz: int) -> int:
    """Writes the table; the exit status."""
    first_ns, last_ns, distance_ms = known[0].begin_ns, known[-1].end_ns, 1000 / rate_hz
    rows, wrong = [], False
    for number, name in enumerate(THIRDS):
        third = [one for call, one in zip(known, told, strict=True) if _third(call, first_ns, last_ns) == number]
        cells, is_wrong = _row(third, distance_ms, error_ms)
        rows.append([name, *cells])
        wrong |= is_wrong
    columns = ["third", "calls", "not met", "begin late ms", "end late ms", "earliest ms", "latest ms"]
    seconds = (last_ns - first_ns) / 1e9
    note = f"""
Two threads, functions of {LONG_S[0]:g} to {LONG_S[1]:g} s, {seconds:.0f} s; {rate_hz} looks in a second, at random,
{distance_ms:g} ms apart on average. Late: by the looks that met a function, after it was called and after it returned;
the mean and its standard error. py-spy's clock, as hwprof put it on its own: error {error_ms:.2f} ms, rate
{1e6 * drift:+.1f} ppm. Expected: nothing earlier than that error, and means of {distance_ms:g} ms in each third.
"""
    tables.write(tables.Table("py-spy's functions and their times", columns, rows, note), TARGET)
    return int(wrong)


def _row(third: Sequence[Lateness | None], distance_ms: float, error_ms: float) -> tuple[list[str], bool]:
    """Its cells; whether something is wrong."""
    some = [one for one in third if one is not None]
    begins, ends = [one.begin_ms for one in some], [one.end_ms for one in some]
    means = [mean_and_error(begins), mean_and_error(ends)]
    earliest_ms, latest_ms = min(*begins, *ends), max(*begins, *ends)
    late = any(mean > distance_ms + error_ms + WIDE * error for mean, error in means)
    cells = [f"{mean:.1f} ±{error:.1f}" for mean, error in means]
    wrong = late or len(some) < len(third) or earliest_ms < -error_ms
    return [str(len(third)), str(len(third) - len(some)), *cells, f"{earliest_ms:.2f}", f"{latest_ms:.1f}"], wrong


def _third(call: Stay, first_ns: int, last_ns: int) -> int:
    return len(THIRDS) * (call.begin_ns - first_ns) // (last_ns - first_ns)


if __name__ == "__main__":
    sys.exit(main())
