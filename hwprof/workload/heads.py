"""What the last module of a model says of it: the task, and with that how the model is built, fed and read.

Cheap: neither torch nor ultralytics is imported.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cache

import msgspec

from hwprof.data_files import read_toml


class TaskEntry(msgspec.Struct, frozen=True):
    """A task, as ``heads.toml`` has it."""

    name: str
    heads: tuple[str, ...]
    model: str
    dataset: str
    image_size: int
    meaningless: str
    thresholds: bool = True


class _Heads(msgspec.Struct):
    task: tuple[TaskEntry, ...]
    refused: dict[str, str]


def known_tasks() -> tuple[TaskEntry, ...]:
    """Those whose output is decoded. Raises ``HwprofError`` for a damaged table."""
    return _read().task


def task_of(head: str) -> TaskEntry | None:
    """The task of models that end in this module; None where their output is not decoded."""
    return next((task for task in known_tasks() if head in task.heads), None)


def why_refused(head: str) -> str:
    """A model that has such a module is not run."""
    return _read().refused.get(head, "hwprof does not know it")


def refused_modules() -> Collection[str]:
    """Those that there is a reason for."""
    return _read().refused.keys()


@cache
def _read() -> _Heads:
    return read_toml(__name__, "heads.toml", _Heads)
