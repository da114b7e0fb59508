"""Digests of what a run keeps: a file that is not what was written is named, instead of believed."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Final

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
    """The same of a file's bytes, which are never in memory at once. Raises ``OSError``."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=SIZE_BYTES)).hexdigest()


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
