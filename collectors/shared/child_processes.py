"""The worker's child processes: their work is real, and nothing on the worker's own threads sees it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hwprof.collector.contract import Note, NoteKind

UNSEEN_SHARE: Final = 0.02
"""Of the worker's processor time, spent by child processes, that is worth a note."""

_NS_A_TICK: Final = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
_WORKED: Final = slice(11, 15)
_REAPED: Final = slice(13, 15)
"""Of the words after a process's name: its own and its waited-for children's processor time; only the latter."""


@dataclass(frozen=True)
class Work:
    """Processor time of child processes in ns, to 10 ms; ``living``: those that live, as ``python3 (pid 123)``."""

    cpu_ns: int = 0
    living: tuple[str, ...] = ()

    def notes(self, own_ns: int, unseen: str) -> list[Note]:
        """The note on it, next to the process's ``own_ns``; ``unseen``: what was not done with it."""
        if self.cpu_ns <= UNSEEN_SHARE * own_ns:
            return []
        who = ", ".join(self.living) or "they have ended"
        text = f"worked for {self.cpu_ns / 1e9:.2f} s, which is not {unseen}: {who}"
        return [Note(NoteKind.SCOPE, text, "child processes", "num_workers=0 (data loaders)")]


class Children:
    """What the child processes of a process (data loaders, say) did since this was made."""

    def __init__(self, pid: int | str = "self") -> None:
        self._pid = pid
        self._before_ns, _ = self._total()

    def worked(self) -> Work:
        """That of all of them; none where the process itself has ended and was waited for."""
        cpu_ns, names = self._total()
        return Work(max(0, cpu_ns - self._before_ns), tuple(names))

    def _total(self) -> tuple[int, list[str]]:
        living = _living(self._pid)
        names = [f"{name} (pid {pid})" for pid, (name, _) in living.items()]
        return sum(cpu_ns for _, cpu_ns in living.values()) + _stat(self._pid, _REAPED)[1], names


def _living(parent: int | str) -> dict[int, tuple[str, int]]:
    """Each child's and further descendant's name and processor time, by pid. Empty on kernels that do not tell
    (CONFIG_PROC_CHILDREN)."""
    found: dict[int, tuple[str, int]] = {}
    parents = [str(parent)]
    while parents:
        for task in Path(f"/proc/{parents.pop()}/task").glob("*/children"):
            for pid in _text(task).split():
                name, cpu_ns = _stat(pid, _WORKED)
                if name:
                    found[int(pid)] = (name, cpu_ns)
                    parents.append(pid)
    return found


def _stat(pid: int | str, words: slice) -> tuple[str, int]:
    """A process's name, and the sum of some of its processor times in ns; nothing if it has ended."""
    name, _, rest = _text(Path(f"/proc/{pid}/stat")).partition("(")[2].rpartition(")")
    return name, sum(map(int, rest.split()[words])) * _NS_A_TICK


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:  # it has ended
        return ""
