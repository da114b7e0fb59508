"""The tools' own files, once what they say is in the run's tables: what is very large is not kept."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from hwprof.printable import as_text
from hwprof.run.directory import RunDirectory
from hwprof.run.manifest import CollectorRecord
from hwprof.run.notes import Note, NoteKind

MOST_BYTES: Final = 200_000_000
"""Of all of a run's together."""

BLOCK_BYTES: Final = 512
"""In which the system says what a file takes: one with holes is larger than that."""

OPTION: Final = "--keep-raw"


class _File(NamedTuple):
    size_bytes: int
    path: Path
    name: str  # below the run's folder, as a text
    collector: CollectorRecord


def drop_large(run: RunDirectory, most_bytes: int = MOST_BYTES) -> None:
    """Removes the largest files of the run's tools until those that remain are ``most_bytes`` together, with a note at
    each tool's record. Other files than regular ones stay. Raises ``OSError`` where the record cannot be written."""
    files = sorted(_files(run), key=lambda file: (-file.size_bytes, file.path))
    left_bytes = sum(file.size_bytes for file in files)
    dropped = []
    for file in files:
        if left_bytes <= most_bytes:
            break
        with suppress(OSError):
            file.path.unlink()
            left_bytes -= file.size_bytes
            dropped.append(file)
    for file in dropped:
        size = f"{file.size_bytes / 1e6:,.0f} MB"
        file.collector.notes.append(Note(NoteKind.SCOPE, f"not kept: {size}", file.name, OPTION))
    if dropped:
        run.save_manifest()


def _files(run: RunDirectory) -> Iterator[_File]:
    """The regular files in the tools' folders; what links lead to is none of the run's."""
    for record in run.manifest.passes:
        for collector in record.collectors:
            for folder, _, names in os.walk(run.path / "raw" / record.name / collector.name):
                for file in names:
                    path = Path(folder, file)
                    with suppress(OSError):
                        found = path.lstat()
                        if stat.S_ISREG(found.st_mode):
                            name = as_text(str(path.relative_to(run.path)))
                            yield _File(min(found.st_size, BLOCK_BYTES * found.st_blocks), path, name, collector)
