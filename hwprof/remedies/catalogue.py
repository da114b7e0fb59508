"""The remedies and variants that there are, and what of them this machine can try."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from hwprof.data_files import read_toml
from hwprof.errors import UsageError
from hwprof.unavailable import Unavailable

FOLDERS: Final = ("/usr/lib/{machine}-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/local/lib", "/lib64")
"""Where distributions keep shared libraries."""

ALIASES: Final = {"bf16": "bfloat16", "ort": "onnxruntime", "onnx": "onnxruntime", "jit": "torchscript"}
"""As they are called elsewhere."""

NUMBERED: Final = re.compile(r"threads=([1-9]\d{0,3})")
THREADS: Final = "threads"


class Remedy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """As ``remedies.toml`` has it."""

    title: str
    group: str
    change: str | None = None
    environment: dict[str, str] = {}
    preload: list[str] = []
    install: str | None = None
    exact: bool = True
    workload: dict[str, bool] = {}
    package: str | None = None
    excludes: list[str] = []
    by_name: bool = False
    adopt: list[str]


class Ready(NamedTuple):
    """A remedy as this machine would try it."""

    name: str  # "channels_last", "threads=4"
    title: str
    group: str
    change: str | None
    environment: dict[str, str]
    threads: int | None  # None: as many as without
    exact: bool  # whether results differ by the order of sums at most
    workload: dict[str, bool]  # fields of the workload's specification that it replaces
    adopt: tuple[str, ...]


@functools.cache
def remedies() -> dict[str, Remedy]:
    """By name, in the order of the file."""
    return read_toml(__name__, "remedies.toml", dict[str, Remedy])


def all_names() -> list[str]:
    """What ``all`` stands for: without those of a number, and those to compare with."""
    return [name for name, one in remedies().items() if name != THREADS and not one.by_name]


def names() -> list[str]:
    """What may be asked for; ``threads=N`` for any number."""
    return [f"{name}=N" if name == THREADS else name for name in remedies()]


def _no_such(name: str) -> UsageError:
    if name.partition("=")[0] == THREADS:
        return UsageError(f"{name}: a number of threads from 1 to 9999", f"{THREADS}=4")
    near = get_close_matches(name.replace("-", "_"), [*remedies(), *ALIASES], n=1)
    meant = ALIASES.get(near[0], near[0]) if near else None
    return UsageError(
        f"there is no remedy or variant {name}", f"did you mean {meant}?" if meant else f"one of {', '.join(names())}"
    )


def ready(name: str, find: Callable[[str], Path | None] | None = None) -> Ready | Unavailable:
    """``find``: where a library lies, None: not installed. Raises ``UsageError`` for a remedy that there is not."""
    known, threads = _known(name)
    if known is None or name == THREADS:
        raise _no_such(name)
    environment = dict(known.environment)
    if known.preload:
        path = _preloaded(known, find)
        if path is None:
            return Unavailable(f"{known.preload[0]} is not installed", known.install)
        environment["LD_PRELOAD"] = str(path)
    if known.package is not None and find_spec(known.package) is None:
        return Unavailable(f"{known.package} is not installed", known.install)
    adopt = lines(name, find)
    return Ready(
        name, title_of(name), known.group, known.change, environment, threads, known.exact, known.workload, adopt
    )


def environment_of(names: Iterable[str]) -> dict[str, str]:
    """Of a process with all of them, beside the user's; nothing of those that this machine lacks."""
    found = (ready(name) for name in names)
    return {key: value for one in found if isinstance(one, Ready) for key, value in one.environment.items()}


def title_of(name: str) -> str:
    """For a reader; the name itself where there is no such remedy."""
    known, threads = _known(name)
    if known is None:
        return name
    title = known.title if threads != 1 else known.title.replace(" threads", " thread")
    return _filled(title, {"threads": str(threads or "N")})


def lines(name: str, find: Callable[[str], Path | None] | None = None) -> tuple[str, ...]:
    """What does the same in the user's own program; nothing where there is no such remedy. A library that is not
    installed here is called by its name, which is enough where it is. ``find``: as ``ready`` takes it."""
    known, threads = _known(name)
    if known is None or name == THREADS:
        return ()
    values = {"threads": str(threads)}
    if known.preload:
        values["path"] = str(_preloaded(known, find) or known.preload[0])
    return tuple(_filled(text, values) for text in known.adopt)


def group_of(name: str) -> str | None:
    """Of which a workload has one at most; None where there is no such remedy."""
    known, _ = _known(name)
    return known.group if known is not None else None


def is_exact(name: str) -> bool:
    """Whether results differ by the order of sums at most; nobody knows it of what is no remedy."""
    known, _ = _known(name)
    return known is None or known.exact


def threads_of(name: str) -> int | None:
    """The number of ``threads=N``; None of others."""
    return _known(name)[1]


def fields_of(names: Iterable[str]) -> dict[str, bool]:
    """The fields of a workload's specification that these replace, with what they are then."""
    known = [found for name in names if (found := _known(name)[0]) is not None]
    return {field: value for one in known for field, value in one.workload.items()}


def place_of(name: str) -> int:
    """In the order in which lines of several remedies must follow one another."""
    order = list(remedies())
    base = name.partition("=")[0]
    return order.index(base) if base in order else len(order)


def together(one: Ready, others: Iterable[Ready]) -> bool:
    """Whether it can be combined with all of them: of each group there is one, and none excludes another's."""
    return all(one.group not in taken([other.name]) and other.group not in taken([one.name]) for other in others)


def taken(names: Iterable[str]) -> frozenset[str]:
    """The groups of which there is nothing more to have with all of these."""
    known = [found for name in names if (found := _known(name)[0]) is not None]
    return frozenset(group for one in known for group in (one.group, *one.excludes))


def library(name: str) -> Path | None:
    """Where a shared library lies; None: not where distributions keep them."""
    machine = os.uname().machine
    for folder in FOLDERS:
        path = Path(folder.format(machine=machine)) / name
        if path.is_file():
            return path
    return None


def _preloaded(known: Remedy, find: Callable[[str], Path | None] | None) -> Path | None:
    return next((found for one in known.preload if (found := (find or library)(one)) is not None), None)


def _known(name: str) -> tuple[Remedy | None, int | None]:
    """The remedy, and the number in its name."""
    numbered = NUMBERED.fullmatch(name)
    return remedies().get(THREADS if numbered else name), int(numbered[1]) if numbered else None


def _filled(text: str, values: dict[str, str]) -> str:
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", value)
    return text
