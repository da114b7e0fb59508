"""Digests of what a run keeps: a file that is not what was written is named, instead of believed."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO, Final

SIZE_BYTES: Final = 16

_SEAL: Final = re.compile(rb',\n "seal": "([0-9a-f]{32})"\n}\n\Z')
"""How a sealed file ends."""

_END: Final = b"\n}\n"
"""How an indented JSON object does."""


class BrokenSealError(ValueError):
    """A sealed text is not what it was when it was sealed."""


def of_bytes(data: bytes) -> str:
    """BLAKE2b, 32 hexadecimal digits."""
    return hashlib.blake2b(data, digest_size=SIZE_BYTES).hexdigest()


def of_file(path: Path) -> str:
    """The file's size and the same of its bytes, which are never in memory at once: ``4096:0f1e…``. Raises
    ``OSError``."""
    with path.open("rb") as file:
        return f"{os.fstat(file.fileno()).st_size}:{_of_bytes_in(file)}"


def is_one_of(path: Path, written: Iterable[str]) -> bool:
    """Whether the file is one of those that ``of_file`` was made of (by older versions without its size). One of
    another size is not read: it may be as large as somebody likes. Raises ``OSError``."""
    with path.open("rb") as file:
        size = str(os.fstat(file.fileno()).st_size)
        digests = [one.rpartition(":")[2] for one in written if one.partition(":")[0] in (size, one)]
        return bool(digests) and _of_bytes_in(file) in digests


def _of_bytes_in(file: BinaryIO) -> str:
    return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=SIZE_BYTES)).hexdigest()  # type: ignore[arg-type]


def sealed(text: bytes) -> bytes:
    """An indented JSON object with a last field that says what is before it. One that somebody has edited with a JSON
    tool is written in another form, and has no seal any more."""
    body = text.removesuffix(_END)
    return body + f',\n "seal": "{of_bytes(body)}"'.encode() + _END


def require_unbroken(text: bytes) -> None:
    """Raises ``BrokenSealError`` where there is a seal and it is broken."""
    seal = _SEAL.search(text)
    if seal is not None and of_bytes(text[: seal.start()]) != seal[1].decode():
        raise BrokenSealError("it is not what hwprof wrote: some of its bytes have changed since")
