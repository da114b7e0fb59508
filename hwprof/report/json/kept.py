"""The document that is kept with its run (``document.json``), so that showing a report needs no table.

It is used only where nothing has changed since: the manifest, the tables (by size and time of change), hwprof's version
and code, and the list of sections. What cannot be read, or does not hold a whole document, is made anew.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from hwprof import __version__
from hwprof.report import sections
from hwprof.report.document.builder import build
from hwprof.report.document.document import Document
from hwprof.report.document.header import DOCUMENT_VERSION
from hwprof.report.json.codec import decode, encode
from hwprof.run.directory import atomic
from hwprof.run.manifest import MANIFEST_FILE
from hwprof.run.regular_files import read_regular

if TYPE_CHECKING:
    from hwprof.run.directory import RunDirectory

FILE: Final = "document.json"
LARGEST_DOCUMENT: Final = 256 << 20  # bytes

_HUGE: Final = re.compile(rb"[:,\[]\s*-?\d{20}")
"""A number of more than 64 bits, of which nobody can make a text; no document of hwprof's has one."""

PACKAGE: Final = Path(__file__).parents[2]
MAKERS: Final = (
    *("", "analysis", "hardware", "hardware/events", "hardware/names", "run"),
    *("report", "report/document", "report/json"),
)
"""The folders of hwprof whose files the document follows from."""


class Kept(msgspec.Struct, forbid_unknown_fields=True):
    """What the file holds."""

    fingerprint: str  # of what the document was made of
    document: msgspec.Raw


def document_of(run: RunDirectory) -> Document:
    """The run's document with all layers as its hottest: the kept one, or a new one, which is then kept where the run's
    directory can be written."""
    document = load(run)
    if document is None:
        from hwprof.run.tables import readable

        with readable(run.path):
            document = build(run)
        keep(run, document)
    return document


def load(run: RunDirectory) -> Document | None:
    """The kept document; None where there is none that holds today."""
    try:
        kept = msgspec.json.decode(read_regular(run.path / FILE, LARGEST_DOCUMENT), type=Kept)
        data = bytes(kept.document)
        if kept.fingerprint != fingerprint(run) or _HUGE.search(data):
            return None
        document = decode(data)
    except (OSError, ValueError, RecursionError):  # msgspec's errors are ValueErrors
        return None
    known = {section.name for section in sections.of_room("document")}
    if document.parts.keys() | document.absent.keys() != known:
        return None
    return msgspec.structs.replace(document, run=msgspec.structs.replace(document.run, path=str(run.path)))


def keep(run: RunDirectory, document: Document) -> bool:
    """Writes it, atomically; false where the directory cannot be written, or not all that it follows from be read."""
    try:
        data = msgspec.json.encode(Kept(fingerprint(run), msgspec.Raw(encode(document))))
        with atomic(run.path / FILE) as part:
            part.write_bytes(data)
    except OSError:
        return False
    return True


def fingerprint(run: RunDirectory) -> str:
    """Of everything that the document follows from. Raises ``OSError``."""
    digest = hashlib.sha256()
    names = [section.name for section in sections.of_room("document")]
    digest.update(repr((__version__, DOCUMENT_VERSION, names)).encode())
    digest.update((run.path / MANIFEST_FILE).read_bytes())
    files = sorted(run.path.glob("*.parquet"))
    files += sorted(file for folder in MAKERS for file in (PACKAGE / folder).iterdir() if file.is_file())
    for file in files:
        status = file.stat()
        digest.update(repr((file.name, status.st_size, status.st_mtime_ns)).encode())
    return digest.hexdigest()
