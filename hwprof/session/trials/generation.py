"""One generation: a fresh process of each contestant, of which one at a time is at work."""

from __future__ import annotations

import math
import os
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from hwprof.errors import HwprofError, is_full_disk
from hwprof.hardware import machine
from hwprof.printable import one_line
from hwprof.remedies.catalogue import Ready, environment_of
from hwprof.session.trials.contestant_process import ContestantProcess
from hwprof.workload.contest import Entry, Measured
from hwprof.workload.spec import WorkloadSpec

ROUNDS: Final = 2
"""Turns of each: processes differ more than turns of one, so there are rather more generations."""

START_S: Final = 300.0
"""To build, to compile, to warm up: as long as the one without may take, and the others where there is time."""

LEAST_START_S: Final = 40.0
"""However little the one without needs."""

LEAST_COMPILE_S: Final = 150.0
"""torch.compile takes a minute or more at its first call, and to export a model to ONNX half as long."""

LEAST_TURN_S: Final = 30.0
"""A turn of the one without takes less time than its start, or a quarter of a second."""

LONGER: Final = 5.0
"""By so much a remedy may take longer than the one without, however much that is."""

COMPILE: Final = frozenset({"compile", "onnxruntime", "openvino"})
"""What a remedy changes that compiles, or exports."""

INDUCTOR: Final = "TORCHINDUCTOR_CACHE_DIR"
"""Where torch.compile leaves what it makes: nothing of an earlier time is found, and nothing is left."""

TEMPORARY: Final = "TMPDIR"
"""Where it leaves the compiled headers all the same, and others what they need for a while."""

SPARE: Final = 0.6
"""Of the memory that is available, so much is used: a model may need more at work than when it waits."""

Name = tuple[str, ...]
"""Of a contestant: its remedies. Of the one without: none."""

WITHOUT: Final[Name] = ()


class Contestant(NamedTuple):
    """The workload with some remedies."""

    remedies: Sequence[Ready] = ()

    @property
    def name(self) -> Name:
        """Those of its remedies."""
        return tuple(one.name for one in self.remedies)

    def entry(self, spec: WorkloadSpec, outputs: Path | None) -> Entry:
        """What its process is to do."""
        threads = next((one.threads for one in self.remedies if one.threads is not None), None)
        fields = {name: value for one in self.remedies for name, value in one.workload.items()}
        return Entry(
            workload=msgspec.structs.replace(spec, threads=threads or spec.threads, **fields),
            threads=threads,
            changes=[one.change for one in self.remedies if one.change is not None],
            outputs=str(outputs) if outputs is not None else None,
        )

    @property
    def environment(self) -> dict[str, str]:
        """Beside the user's."""
        return {name: value for one in self.remedies for name, value in one.environment.items()}


@dataclass
class Found:
    """Of one generation, by contestant."""

    turns: dict[Name, list[Measured]] = field(default_factory=dict)
    failed: dict[Name, HwprofError] = field(default_factory=dict)
    waiting: list[Name] = field(default_factory=list)  # for another heat: there was no memory for them too


@dataclass(frozen=True)
class Place:
    """Where it takes place."""

    spec: WorkloadSpec
    folder: Path
    weights: int  # a descriptor of a file that all share
    report: Callable[[str, int | None], None]
    step: Callable[[], None]
    left_s: Callable[[], float]  # of the time that the user gave; negative when it is over

    @property
    def environment(self) -> dict[str, str]:
        """That of the variants which the run measured, with all remedies alike."""
        return environment_of(self.spec.variants)


class Limits(NamedTuple):
    """In seconds."""

    start_s: float
    turn_s: float


def limits(first_s: float, batch: Sequence[Contestant], cores: int, left_s: float) -> Limits:
    """How long remedies may take that start at once, and share the cores, by how long the one without took to start,
    alone, and the time that is left: who hangs costs no more."""
    compiles = any(remedy.change in COMPILE for one in batch for remedy in one.remedies)
    least_s, given_s = LEAST_COMPILE_S if compiles else LEAST_START_S, min(START_S, left_s / 2)
    shared_s = LONGER * first_s * math.ceil(len(batch) / max(1, cores))
    return Limits(max(least_s, shared_s, given_s), max(LEAST_TURN_S, LONGER * first_s, given_s))


def outputs_file(folder: Path, name: Name) -> Path:
    """Where a contestant's outputs are kept."""
    return folder / f"{'-'.join(name) or 'without'}.npz"


def again_file(folder: Path) -> Path:
    """Those of the one without a remedy, of a second process."""
    return folder / "again.npz"


def fit(pid: int) -> int:
    """How many more processes like this one the memory has room for; at least one: somebody has to be compared."""
    available, resident = machine.available_bytes(), machine.process_bytes(pid, "VmRSS")
    return max(1, int(available * SPARE // resident)) if resident else 1


def carry_out(place: Place, contestants: Sequence[Contestant], number: int) -> Found:
    """The first contestant warms up before the others start: they have its weights then, and it is known how much
    memory one takes. Raises ``HwprofError`` where that one fails, or the disk is full: nothing can be compared then."""
    found = Found()
    running: dict[Name, ContestantProcess] = {}
    try:
        first, *others = contestants
        began_s = time.monotonic()
        place.report(f"round {number + 1}: starting {len(contestants)} processes", None)
        _start(place, [first], running, found, number, START_S)
        _raise_of(first, found)
        first_s = time.monotonic() - began_s
        room = fit(running[first.name].pid)
        found.waiting = [one.name for one in others[room:]]
        limit = limits(first_s, others[:room], len(os.sched_getaffinity(0)), place.left_s())
        _start(place, others[:room], running, found, number, limit.start_s)
        place.report(f"round {number + 1}: measuring", ROUNDS * len(running))
        _take_turns(place, running, found, random.Random(number), limit.turn_s)
        _raise_of(first, found)
        for process in running.values():
            process.end()
    finally:
        for process in running.values():
            process.kill()
    return found


def no_room(folder: Path, error: OSError | HwprofError) -> HwprofError:
    """Of what could not be written: where temporary files are, and what to do."""
    what = str(error.strerror or error) if isinstance(error, OSError) else error.message
    message = f"nothing more can be tried: {what} (temporary files are in {one_line(str(folder.parent))})"
    return HwprofError(message, "free some space there, or set TMPDIR")


def _raise_of(first: Contestant, found: Found) -> None:
    if (error := found.failed.get(first.name)) is not None:
        raise HwprofError(f"the workload as it is cannot be done again: {error.message}", error.remedy)


def _start(
    place: Place,
    batch: Sequence[Contestant],
    running: dict[Name, ContestantProcess],
    found: Found,
    number: int,
    limit_s: float,
) -> None:
    """All of them together, each until it is ready, or the limit of all is over."""
    started = {}
    for one in batch:
        entry = one.entry(place.spec, _kept(place.folder, one.name, number))
        name = "-".join(one.name) or "without"
        try:
            environment = place.environment | one.environment | left_in(place.folder)
            started[one.name] = ContestantProcess(entry, place.folder, name, environment, place.weights)
        except OSError as error:
            if is_full_disk(error):
                running |= started
                raise no_room(place.folder, error) from error
            found.failed[one.name] = HwprofError(f"it does not start: {error.strerror}")
    running |= started
    for contestant, process in started.items():
        try:
            process.wait_until_ready(limit_s)
        except HwprofError as error:
            _gone(place.folder, contestant, running, found, error)


def left_in(folder: Path) -> dict[str, str]:
    """The environment in which a contestant's libraries leave what they keep in this folder, which is taken away."""
    return {INDUCTOR: str(folder / "inductor"), TEMPORARY: str(folder)}


def _kept(folder: Path, name: Name, number: int) -> Path | None:
    """Where outputs go, in a generation in which they are compared."""
    if number == 0:
        return outputs_file(folder, name)
    return again_file(folder) if number == 1 and name == WITHOUT else None


def _take_turns(
    place: Place, running: dict[Name, ContestantProcess], found: Found, chance: random.Random, limit_s: float
) -> None:
    """Each as often as the others, in an order that chance has made: what drifts, drifts for all alike."""
    for _ in range(ROUNDS):
        for contestant in chance.sample(list(running), len(running)):
            try:
                found.turns.setdefault(contestant, []).append(running[contestant].turn(limit_s))
            except HwprofError as error:
                found.turns.pop(contestant, None)
                _gone(place.folder, contestant, running, found, error)
            place.step()


def _gone(
    folder: Path, contestant: Name, running: dict[Name, ContestantProcess], found: Found, error: HwprofError
) -> None:
    running.pop(contestant).kill()
    if is_full_disk(error):  # which is no remedy's fault
        raise no_room(folder, error)
    found.failed[contestant] = error
