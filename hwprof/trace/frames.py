"""What code a sample or a caller was in: by the run's kernels where they are known, else by file and offset."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath
from typing import Final, NamedTuple

import numpy as np
import polars as pl

OPERATING_SYSTEM: Final = "[kernel]"
UNKNOWN: Final = "[unknown]"
ANONYMOUS: Final = "[anonymous memory]"
UNNAMED: Final = "unnamed"
"""The domain of code that nobody named."""


class Key(NamedTuple):
    """What a frame is identified by: a kernel, or where there is none, an address of the process or of the system."""

    kernel: int | None
    address: int
    in_system: bool


def keys_of(samples: pl.DataFrame) -> pl.DataFrame:
    """Of each sample what it ran, as the columns of ``Key``."""
    named = pl.col("kernel").is_not_null()
    return samples.select(
        "kernel",
        address=pl.when(named).then(0).otherwise("address").cast(pl.UInt64),
        in_system=~named & (pl.col("domain") == "kernel"),
    )


@dataclass(frozen=True)
class File:
    """Executable memory and the file that it came from."""

    path: str
    start: int = 0
    end: int = 0
    offset: int = 0


@dataclass(frozen=True)
class Place:
    """A frame: what it is called, and where it lies."""

    name: str
    file: File
    relative: int
    """Its address within the file."""
    domain: str = UNNAMED
    full_name: str | None = None


class Code:
    """The code of one pass. A kernel without a name goes by its library's."""

    def __init__(self, mappings: pl.DataFrame, kernels: pl.DataFrame) -> None:
        ordered = mappings.sort("time_ns", maintain_order=True)
        self._start = ordered["address"].to_numpy()
        self._end = (ordered["address"] + ordered["size_bytes"]).to_numpy()
        self._offset = ordered["offset_bytes"].to_list()
        self._path = ordered["file"].to_list()
        self._kernels = {row["kernel"]: row for row in kernels.iter_rows(named=True)}
        self._places: dict[Key, Place] = {}

    def place(self, key: Key) -> Place:
        """What is there."""
        if key not in self._places:
            self._places[key] = self._at(key) if key.kernel is None else self._kernel(key.kernel)
        return self._places[key]

    def _kernel(self, number: int) -> Place:
        row = self._kernels.get(number)
        if row is None:
            return Place(UNKNOWN, File(UNKNOWN), 0)
        address = row["address"] or 0
        found = self._file(address) if address else None
        file = found if found is not None and PurePath(found.path).name == row["library"] else File(row["library"])
        return Place(row["name"] or row["library"], file, _relative(address, file), row["domain"], row["full_name"])

    def _at(self, key: Key) -> Place:
        if key.in_system:
            return Place(f"{OPERATING_SYSTEM} {key.address:#x}", File(OPERATING_SYSTEM), key.address, "kernel")
        file = self._file(key.address)
        if file is None:
            return Place(f"{key.address:#x}", File(UNKNOWN), key.address)
        relative = _relative(key.address, file)
        return Place(f"{PurePath(file.path).name}+{relative:#x}", file, relative)

    def _file(self, address: int) -> File | None:
        """The last that was mapped there."""
        at = np.uint64(address)
        found = np.flatnonzero((self._start <= at) & (at < self._end))
        if not len(found):
            return None
        last = int(found[-1])
        path = ANONYMOUS if self._path[last].startswith("//anon") else self._path[last]
        return File(path, int(self._start[last]), int(self._end[last]), self._offset[last])


def _relative(address: int, file: File) -> int:
    return address - file.start + file.offset if file.start else address
