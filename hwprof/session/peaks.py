"""Measures this machine's peaks, and keeps them for each machine and way of using it."""

from __future__ import annotations

import hashlib
import os
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec

from hwprof import packages, programs
from hwprof.c_compiler import cache_folder
from hwprof.hardware.peaks import team
from hwprof.hardware.peaks.data_sheet import theoretical
from hwprof.run.atomic import atomic
from hwprof.run.manifest import Machine
from hwprof.run.peaks import NotMeasured, Peak, Peaks, best_of, hindered, scaled
from hwprof.run.regular_files import read_regular
from hwprof.session.quiet import Others

VERSION: Final = 3
"""Of what is measured, and how."""

TOO_LOW_S: Final = 3600
"""For so long a busy machine is not measured again."""

GEMM_LIMIT_S: Final = 60
LARGEST_BYTES: Final = 1 << 20
MOST_FILES: Final = 100

OF_TORCH: Final = "gemm-"


def usual_threads(machine: Machine) -> list[int]:
    """One, and one a core that this process may use, as far as its control group lets them run at a time."""
    most = team.cores() if machine.cpu_limit is None else min(team.cores(), int(machine.cpu_limit))
    return sorted({1, max(1, most)})


def kept(machine: Machine, threads: Sequence[int], *, too_low: bool = True) -> Peaks | None:
    """Those of an earlier time; None where there are none with so many threads, or none that can be read. Those that
    were measured while others used the machine are too low: good for ``TOO_LOW_S``, or not at all (not ``too_low``, or
    where a core was taken while all worked)."""
    known = [one for one in _all(machine) if set(threads) <= set(one.threads)]
    quiet = [one for one in known if not one.disturbed]
    low = [one for one in known if too_low and _age_s(one) <= TOO_LOW_S and not hindered(one.peaks)]
    return min(quiet or low, key=_age_s, default=None)


def _all(machine: Machine) -> list[Peaks]:
    """That are kept of this machine, as far as they can be read."""
    found = []
    with suppress(OSError, RuntimeError):
        for file in sorted(cache_folder().glob(f"peaks-{digest(machine)}-*.json"))[:MOST_FILES]:
            with suppress(OSError, msgspec.MsgspecError):
                found.append(msgspec.json.decode(read_regular(file, LARGEST_BYTES), type=Peaks))
    return [one for one in found if one.machine == digest(machine)]


def measure(machine: Machine, threads: Sequence[int], report: Callable[[str], None] = lambda _: None) -> Peaks:
    """Some eight seconds for two numbers of threads. Where others disturbed these and those before, the best of both.
    A cache folder that cannot be written to costs only that."""
    from hwprof.hardware.peaks.suite import Suite  # with numpy, which known peaks do not need

    began_s, others = time.monotonic(), Others()
    suite = Suite(machine, report)
    suite.carry_out(threads)
    report("matrix products by torch")
    products, why_none = _products(threads)
    found = Peaks(
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        machine=digest(machine),
        processor=machine.processor,
        threads=sorted(set(threads)),
        peaks=scaled([*suite.peaks, *products]),
        missing=[*suite.missing, *([why_none] if why_none is not None else [])],
        others_share=min(share, 1.0) if (share := others.share()) is not None else None,
        seconds=time.monotonic() - began_s,
        built_by=suite.built_by,
    )
    found = _with_earlier(_by_data_sheet(found, machine), machine)
    _keep(found, machine)
    return found


def _with_earlier(found: Peaks, machine: Machine) -> Peaks:
    """Two times that others were in the way, they need not have been in the way of the same."""
    if not found.disturbed:
        return found
    low = [one for one in _all(machine) if one.disturbed and one.threads == found.threads]
    return _by_data_sheet(best_of(found, min(low, key=_age_s)), machine) if low else found


def _by_data_sheet(found: Peaks, machine: Machine) -> Peaks:
    """With what the data sheet says at the clock that these have, which of several measurements is the best one's."""
    clock = found.find("clock")
    known = theoretical(machine, found.threads, clock.value if clock is not None else None)
    return msgspec.structs.replace(found, theoretical=known)


def digest(machine: Machine) -> str:
    """What the peaks depend on: another machine's, or those of other processors of it, are others."""
    of = (
        VERSION,
        machine.hostname,
        machine.architecture,
        machine.processor,
        machine.family,
        machine.model,
        machine.stepping,
        [msgspec.structs.astuple(one) for one in machine.caches],
        machine.cpu_limit,
        sorted(os.sched_getaffinity(0)),
        machine.memory_bytes,
    )
    return hashlib.sha256(repr(of).encode()).hexdigest()[:16]


def _products(threads: Sequence[int]) -> tuple[list[Peak], NotMeasured | None]:
    """In a process of its own: this one has no torch."""
    numbers = [str(number) for number in sorted(set(threads)) if len(team.processors(number)) == number]
    try:
        ended = programs.run([sys.executable, "-P", "-m", "hwprof.workload.gemm", *numbers], limit_s=GEMM_LIMIT_S)
        if ended.status == 0:
            return msgspec.json.decode(ended.output, type=list[Peak]), None
        reason = ended.errors.decode(errors="replace").strip().rpartition("\n")[2] or ended.reason()
    except (programs.ProgramError, msgspec.MsgspecError) as error:
        reason = str(error)
    return [], NotMeasured(what=f"{OF_TORCH}fp32", reason=f"torch: {reason}", remedy=packages.TORCH)


def _age_s(found: Peaks) -> float:
    """Since they were measured; far where nobody can tell."""
    try:
        age_s = (datetime.now(UTC) - datetime.fromisoformat(found.created)).total_seconds()
    except (ValueError, TypeError):
        return float("inf")
    return age_s if age_s >= 0 else float("inf")


def _file(machine: Machine, threads: Sequence[int]) -> Path:
    """One for each number of threads: who tries several in turn waits for each once. Raises ``RuntimeError`` where
    there is no home."""
    return cache_folder() / f"peaks-{digest(machine)}-{max(threads)}.json"


def _keep(found: Peaks, machine: Machine) -> None:
    """Those of a busy machine take the place of none that are better."""
    if found.disturbed and kept(machine, found.threads, too_low=False) is not None:
        return
    try:
        file = _file(machine, found.threads)
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with atomic(file) as part:
            part.write_bytes(msgspec.json.encode(found))
    except (OSError, RuntimeError):
        return
