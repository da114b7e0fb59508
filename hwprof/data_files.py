"""Data files of packages: TOML beside the code that needs it, read into a typed value."""

from __future__ import annotations

import tomllib
from importlib import resources
from typing import TypeVar

import msgspec

from hwprof.errors import HwprofError

Data = TypeVar("Data")


def read_toml(module: str, file: str, kind: type[Data], *, until: str = "") -> Data:
    """The file beside ``module`` (pass ``__name__``) as a ``kind``; ``file`` may lie in a folder: ``events/x.toml``.
    ``until``: only what stands before the first such text.

    Raises ``FileNotFoundError`` where there is no such file, ``HwprofError`` that names file and entry for one that is
    no TOML or does not hold a ``kind``.
    """
    package = module.rpartition(".")[0]
    text = resources.files(package).joinpath(*file.split("/")).read_text(encoding="utf-8")
    try:
        return msgspec.convert(tomllib.loads(text.split(until, 1)[0] if until else text), kind)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise HwprofError(f"{package.replace('.', '/')}/{file}: {error}", "install the package anew") from error
