"""What a supervisor and the process that a remedy is tried in say to each other; needs no torch."""

from __future__ import annotations

from pathlib import Path
from typing import Final, TypeAlias

import msgspec

from hwprof.workload.spec import WorkloadSpec

TURN: Final = b"t"
END: Final = b"e"
"""What the supervisor writes."""


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """What a process is to do."""

    workload: WorkloadSpec
    threads: int | None = None  # that the remedy is about
    changes: list[str] = []  # see ``changes.BEFORE`` and ``changes.AFTER``
    warmup: int = 2
    turn_s: float = 0.25  # so long at least it measures at a time
    outputs: str | None = None  # the file that what the model gives in the warm-up is kept in

    def write(self, path: Path) -> None:
        """As JSON."""
        path.write_bytes(msgspec.json.encode(self))

    @classmethod
    def read(cls, path: Path) -> Entry:
        """From JSON; raises ``msgspec.MsgspecError``."""
        return msgspec.json.decode(path.read_bytes(), type=cls)


class Ready(msgspec.Struct, frozen=True, tag="ready"):
    """It has warmed up, and waits for its turn."""


class Measured(msgspec.Struct, frozen=True, tag="measured"):
    """One turn."""

    inference_ns: list[int]  # of each iteration; all calls of the model in it
    iteration_ns: list[int]
    peak_bytes: int | None  # the most that was resident since the warm-up; None: the kernel does not tell

    @property
    def plausible(self) -> bool:
        """A model's code has the process, and may write what it likes."""
        pairs = zip(self.inference_ns, self.iteration_ns, strict=False)
        alike = 0 < len(self.inference_ns) == len(self.iteration_ns)
        return alike and all(0 < inner <= outer for inner, outer in pairs) and (self.peak_bytes or 1) > 0


class Refused(msgspec.Struct, frozen=True, tag="refused"):
    """It gives up."""

    reason: str
    remedy: str | None = None


Said: TypeAlias = Ready | Measured | Refused

_decoder: msgspec.json.Decoder[Said] = msgspec.json.Decoder(Said)


def decode(line: bytes) -> Said:
    """The message of a line; raises ``msgspec.MsgspecError``."""
    said: Said = _decoder.decode(line)
    return said
