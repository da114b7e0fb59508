"""What is done to hwprof in one case, and what may come of it."""

from __future__ import annotations

import codecs
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

USUAL: Final = frozenset({0, 1, 2})
"""Exit codes of a command that no signal ended."""


@dataclass(frozen=True)
class Case:
    """A command in a folder of its own, in which everything is prepared."""

    what: str  # was done, for whoever repeats it
    arguments: tuple[str, ...]  # of hwprof; of ``call`` where that is set
    call: str = ""  # instead of the command line: a function in ``actions``
    codes: frozenset[int] = USUAL
    limit_s: float = 20.0
    limit_bytes: int = 1 << 30  # of resident memory, beside what the warmed process has
    unchanged: Sequence[Path] = ()  # files that must be what they were
    environment: Mapping[str, str | None] = field(default_factory=dict)  # None: not there
    limits: Mapping[str, int] = field(default_factory=dict)  # as ``resource`` names them: RLIMIT_NOFILE
    streams: Mapping[int, str] = field(
        default_factory=dict
    )  # 0 to 2: "closed", "full", "nobody" (a pipe without reader)
    signals: Sequence[tuple[str, float]] = ()  # by name, so many seconds after the start
    then: tuple[str, ...] = ()  # a command that must hold to the rules afterwards: what is kept can be read
    beside: int = 0  # so many more do the same at the same moment; each that succeeds has a run of its own
    disk_bytes: int | None = None  # where results are kept, there is room for so many
    slow_s: float = 0.0  # each access to a disk takes so long
    told: bool = True  # what goes to standard error can be read
    quiet: bool = False  # nothing that audits as dangerous may happen (see ``forked``)


def text_of(file: Path, case: Case) -> str:
    """What a process has printed, without a last character that a limit of the file's size may have cut in two."""
    decoder = codecs.getincrementaldecoder("utf-8")(errors="surrogateescape")
    return decoder.decode(file.read_bytes(), "RLIMIT_FSIZE" not in case.limits) if file.exists() else ""


@dataclass
class Outcome:
    """What came of a case."""

    code: int  # as the shell would have it: 128 + the signal that ended it
    out: str
    err: str
    seconds: float
    peak_bytes: int
    left: list[str] = field(default_factory=list)  # processes that still live
    events: list[str] = field(default_factory=list)  # dangerous ones that were seen
    timed_out: bool = False
    unheard: bool = False  # a signal ended it before it had begun a run: Python itself was still starting, as a rule
