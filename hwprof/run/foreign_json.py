"""JSON that a stranger may have written, or a model's code: whatever is in it, there is one error for what is not what
it should be."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import msgspec

Kind = TypeVar("Kind")
Read = TypeVar("Read")


def decode(data: bytes, kind: type[Kind]) -> Kind:
    """One document. Raises ``msgspec.DecodeError``."""
    return _read(lambda: msgspec.json.decode(data, type=kind))


def decode_lines(data: bytes, kind: type[Kind]) -> list[Kind]:
    """One a line. Raises ``msgspec.DecodeError``."""
    return _read(lambda: msgspec.json.Decoder(kind).decode_lines(data))


def _read(read: Callable[[], Read]) -> Read:
    try:
        return read()
    except RecursionError as error:  # also of fields that nobody asks for
        raise msgspec.DecodeError("it is nested too deeply") from error
    except UnicodeDecodeError as error:
        raise msgspec.DecodeError("it is no text") from error
