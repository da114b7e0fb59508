"""What the processes of a case leave beside pyperf's own file: every iteration's times, and what the model is."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from hwprof.run.manifest import WorkloadRecord
from hwprof.run.regular_files import read_regular
from hwprof.run.trials import Positive

FACTS_FILE: Final = "model.json"
FAILURE_FILE: Final = "failure.json"
SAMPLES: Final = "samples-{}.json"

LARGEST_BYTES: Final = 64 << 20


class Value(msgspec.Struct, frozen=True, array_like=True):
    """When one of pyperf's values was measured, on CLOCK_MONOTONIC, and of how many iterations it is."""

    begin_ns: int
    end_ns: int
    iterations: Positive


class Samples(msgspec.Struct, kw_only=True):
    """Of one process: its iterations in their order, without warm-up."""

    inference_ns: list[Positive] = []  # of an iteration, by how many forwards it has
    iteration_ns: list[Positive] = []
    values: list[Value] = []
    peak_bytes: Positive | None = None  # the most that was resident; null: the kernel does not tell


class Model(msgspec.Struct, kw_only=True):
    """What a case's model is, and one iteration."""

    record: WorkloadRecord
    forwards: Positive
    images: Positive  # of an iteration: of a model of the user's, what its first input has of its first dimension
    size_bytes: int  # of parameters and buffers, as the variant has them; of another program, PyTorch's
    macs: int | None  # of a forward, on average; null: not known
    bytes: int | None  # modelled: what its layers read and write; null: not known of all
    versions: dict[str, str] = {}


class Failure(msgspec.Struct):
    """Why there is nothing."""

    message: str
    remedy: str | None = None
    final: bool = True  # it would fail again


def samples_in(folder: Path) -> list[Samples]:
    """Of all processes; raises ``OSError`` and ``msgspec.MsgspecError``."""
    files = sorted(folder.glob(SAMPLES.format("*")))
    return [msgspec.json.decode(read_regular(file, LARGEST_BYTES), type=Samples) for file in files]
