"""What the processes of a case leave beside pyperf's own file: every iteration's times, value by value, and what the
model is."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

import msgspec

from hwprof.run.foreign_json import decode_lines
from hwprof.run.manifest import WorkloadRecord
from hwprof.run.regular_files import read_regular
from hwprof.run.trials import Amount, Positive

FACTS_FILE: Final = "model.json"
FAILURE_FILE: Final = "failure.json"
SAMPLES: Final = "samples-{}.jsonl"

LARGEST_BYTES: Final = 64 << 20
LARGEST_SAMPLES_BYTES: Final = 1 << 30


def largest_bytes_of(name: str) -> int:
    """Up to which a case's file of that name is read, and brought from one machine to another."""
    return LARGEST_SAMPLES_BYTES if fnmatchcase(name, SAMPLES.format("*")) else LARGEST_BYTES


class Value(msgspec.Struct, frozen=True, kw_only=True):
    """One of pyperf's values: a line of JSON."""

    begin_ns: Amount  # on CLOCK_MONOTONIC
    end_ns: Amount
    inference_ns: list[Positive]  # of each iteration, by how many forwards it has
    iteration_ns: list[Positive]
    peak_bytes: Positive | None = None  # the most that was resident so far; null: the kernel does not tell


class Samples(msgspec.Struct, kw_only=True):
    """Of one process: its values in their order, without warm-up."""

    values: list[Value] = []

    @property
    def inference_ns(self) -> list[int]:
        """Of all iterations."""
        return [ns for value in self.values for ns in value.inference_ns]

    @property
    def iteration_ns(self) -> list[int]:
        """Of all iterations."""
        return [ns for value in self.values for ns in value.iteration_ns]

    @property
    def peak_bytes(self) -> int | None:
        """The most that was resident; None: the kernel does not tell."""
        return max((value.peak_bytes or 0 for value in self.values), default=0) or None


class Model(msgspec.Struct, kw_only=True):
    """What a case's model is, and one iteration."""

    record: WorkloadRecord
    forwards: Positive
    images: Positive  # of an iteration; of a model of the user's, whose inputs may be anything, its forwards
    size_bytes: Amount  # of parameters and buffers, as the variant has them; of another program, PyTorch's
    macs: Amount | None  # of a forward, on average; null: not known
    bytes: Amount | None  # modelled: what its layers read and write; null: not known of all
    notes: list[str] = []  # on the variant
    versions: dict[str, str] = {}


class Failure(msgspec.Struct):
    """Why there is nothing."""

    message: str
    remedy: str | None = None


def samples_in(folder: Path) -> list[Samples]:
    """Of all processes; raises ``OSError`` and ``msgspec.MsgspecError``."""
    files = sorted(folder.glob(SAMPLES.format("*")))
    return [Samples(values=decode_lines(read_regular(file, LARGEST_SAMPLES_BYTES), Value)) for file in files]
