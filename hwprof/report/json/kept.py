"""The document that is kept with its run (``document.json``), so that showing a report needs no table.

It is used only where nothing has changed since: the manifest, the tables (by size and time of change), hwprof's version
and code, and the list of sections. What cannot be read, or does not hold a whole document, is made anew. A run may be
measured while somebody looks at it: what changed in the midst of making the document is not kept.
"""

from __future__ import annotations

import hashlib
import re
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from hwprof import __version__
from hwprof.errors import HwprofError
from hwprof.report import sections
from hwprof.report.document.builder import build
from hwprof.report.document.document import Document
from hwprof.report.document.header import DOCUMENT_VERSION
from hwprof.report.json.codec import decode, encode_exactly
from hwprof.run import digests
from hwprof.run.atomic import atomic
from hwprof.run.directory import RunDirectory
from hwprof.run.regular_files import read_regular

FILE: Final = "document.json"
LARGEST_DOCUMENT: Final = 256 << 20  # bytes

_ANY_DIGIT: Final = bytes.maketrans(b"123456789", b"000000000")
_MANY: Final = b"0" * 20
_HUGE: Final = re.compile(rb"[:,\[]\s*-?\d{20}")
"""A number of more than 64 bits, of which nobody can make a text; no document of hwprof's has one."""

PACKAGE: Final = Path(__file__).parents[2]
MAKERS: Final = (
    *("", "analysis", "analysis/findings", "hardware", "hardware/events", "hardware/names", "remedies", "run"),
    *("report", "report/document", "report/json"),
)
"""The folders of hwprof whose files the document follows from."""


class Kept(msgspec.Struct, forbid_unknown_fields=True):
    """What the file holds."""

    fingerprint: str  # of what the document was made of
    digest: str  # of the document
    document: msgspec.Raw


def document_of(run: RunDirectory) -> Document:
    """The run's document with all layers as its hottest: the kept one, or a new one."""
    return load(run) or made_anew(run)


def made_anew(run: RunDirectory) -> Document:
    """A new document, which is kept where the run's directory can be written."""
    from hwprof.run.tables import readable

    made_of = fingerprint_of(run)
    with readable(run.path):
        _require_memory(run)
        document = build(run)
    if not document.damaged:  # a copy may be put in its place
        keep(run, document, made_of)
    return document


def _require_memory(run: RunDirectory) -> None:
    """A stranger's table of a few kilobytes may unpack to more than there is, and the machine would stand still."""
    from hwprof.hardware.machine import available_bytes
    from hwprof.run.schema import TABLES

    available = available_bytes()
    if not available:  # nobody knows
        return
    for table in TABLES:
        needed = 0
        with suppress(HwprofError):  # one that is damaged is told when it is read
            needed = run.memory_bytes(table)
        if needed > available:
            told = f"{needed / 1e9:.1f} GB to analyse, and {available / 1e9:.1f} GB are free"
            raise HwprofError(f"{table}.parquet of this run may take {told}", "a machine with more memory")


def load(run: RunDirectory) -> Document | None:
    """The kept document; None where there is none that holds today."""
    try:
        kept = msgspec.json.decode(read_regular(run.path / FILE, LARGEST_DOCUMENT), type=Kept)
        data = bytes(kept.document)
        if kept.fingerprint != fingerprint(run) or kept.digest != digests.of_bytes(data) or has_huge(data):
            return None
        document = decode(data)
    except (OSError, ValueError, RecursionError):  # msgspec's errors are ValueErrors
        return None
    known = {section.name for section in sections.of_room("document")}
    if document.parts.keys() | document.absent.keys() != known:
        return None
    return msgspec.structs.replace(document, run=msgspec.structs.replace(document.run, path=str(run.path)))


def has_huge(data: bytes) -> bool:
    """Whether there is such a number. Looking for as many digits, behind no point, takes a tenth of the time."""
    digits = data.translate(_ANY_DIGIT)
    place = digits.find(_MANY)
    while place >= 0:
        if digits[place - 1 : place] not in (b".", b"0"):
            return _HUGE.search(data) is not None
        place = digits.find(_MANY, place + len(_MANY))
    return False


def keep(run: RunDirectory, document: Document, made_of: str | None) -> bool:
    """Writes it, atomically. ``made_of``: the run's fingerprint from before the document was made; false where it has
    another one now, or the directory cannot be written."""
    try:
        if made_of is None or made_of != fingerprint(RunDirectory.open(run.path)):
            return False
        encoded = encode_exactly(document)
        data = msgspec.json.encode(Kept(made_of, digests.of_bytes(encoded), msgspec.Raw(encoded)))
        with atomic(run.path / FILE) as part:
            part.write_bytes(data)
    except (OSError, HwprofError):
        return False
    return True


def fingerprint_of(run: RunDirectory) -> str | None:
    """``fingerprint``; None where not all that it is of can be read."""
    try:
        return fingerprint(run)
    except OSError:
        return None


def fingerprint(run: RunDirectory) -> str:
    """Of everything that the document follows from: the manifest as it was opened, not as it may have become since.
    Raises ``OSError``."""
    digest = hashlib.sha256()
    names = [section.name for section in sections.of_room("document")]
    digest.update(repr((__version__, DOCUMENT_VERSION, names)).encode())
    digest.update(msgspec.json.encode(run.manifest))
    files = sorted(run.path.glob("*.parquet"))
    files += sorted(file for folder in MAKERS for file in (PACKAGE / folder).iterdir() if file.is_file())
    for file in files:
        status = file.stat()
        digest.update(repr((file.name, status.st_size, status.st_mtime_ns)).encode())
    return digest.hexdigest()
