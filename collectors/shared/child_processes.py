"""The worker's child processes: their work is real, and nothing on the worker's own threads sees it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hwprof.collector.contract import Note, NoteKind

UNSEEN_SHARE: Final = 0.02
"""Of the worker's processor time, spent by child processes, that is worth a note."""

OF_COLLECTORS: Final = ("py-spy",)
"""The names of programs that collectors run beside the worker: nobody's work."""

_NS_A_TICK: Final = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
_WORKED: Final = slice(11, 15)
_REAPED: Final = slice(13, 15)
"""Of the words after a process's name: its own and its waited-for children's processor time; only the latter."""


@dataclass(frozen=True)
class Work:
    """Processor time of child processes in ns, to 10 ms; ``living``: those that worked and live, as ``python3 (pid
    123)``; ``ended_ns``: by those that have ended."""

    cpu_ns: int = 0
    living: tuple[str, ...] = ()
    ended_ns: int = 0

    def notes(self, own_ns: int, unseen: str) -> list[Note]:
        """The note on it, next to the process's ``own_ns``; ``unseen``: what was not done with it."""
        if self.cpu_ns <= UNSEEN_SHARE * own_ns:
            return []
        ended = [] if not self.ended_ns else ["others that have ended"] if self.living else ["they have ended"]
        who = ", ".join([*self.living, *ended])
        text = f"worked for {self.cpu_ns / 1e9:.2f} s, which is not {unseen}: {who}"
        return [Note(NoteKind.SCOPE, text, "child processes", "num_workers=0 (data loaders)")]


class Children:
    """What the child processes of a process (data loaders, say) did since this was made."""

    def __init__(self, pid: int | str = "self") -> None:
        self._pid = pid
        self._before, self._tools = _living(self._pid)
        self._reaped_ns = _stat(self._pid, _REAPED)[1]
        self._last = Work()

    def look(self) -> None:
        """While a collector's program is there: what is known now is what counts when it has ended."""
        if self._tools:
            self.worked()

    def worked(self) -> Work:
        """That of all of them, by now; none where the process itself has ended and was waited for. Where a collector's
        program has ended, what it did is in the sum of those that have, and nobody tells how much: then it is what was
        found at the call before."""
        reaped_ns = _stat(self._pid, _REAPED)[1]  # before the look at who lives: one that lives then is not in it
        living, tools = _living(self._pid)
        if not self._tools - tools:
            self._last = self._sum(living, reaped_ns)
        return self._last

    def _sum(self, living: dict[int, tuple[str, int]], reaped_ns: int) -> Work:
        nothing = ("", 0)
        worked_ns = {pid: cpu_ns - self._before.get(pid, nothing)[1] for pid, (_, cpu_ns) in living.items()}
        earlier_ns = sum(cpu_ns for pid, (_, cpu_ns) in self._before.items() if pid not in living)
        ended_ns = max(0, reaped_ns - self._reaped_ns - earlier_ns)
        names = tuple(f"{name} (pid {pid})" for pid, (name, _) in living.items() if worked_ns[pid] > 0)
        return Work(max(0, sum(worked_ns.values())) + ended_ns, names, ended_ns)


def _living(parent: int | str) -> tuple[dict[int, tuple[str, int]], set[int]]:
    """Each child's and further descendant's name and processor time, by pid, and the pids of collectors' programs.
    Empty on kernels that do not tell (CONFIG_PROC_CHILDREN)."""
    found: dict[int, tuple[str, int]] = {}
    tools: set[int] = set()
    parents = [str(parent)]
    while parents:
        for task in Path(f"/proc/{parents.pop()}/task").glob("*/children"):
            for pid in _text(task).split():
                name, cpu_ns = _stat(pid, _WORKED)
                if name in OF_COLLECTORS:
                    tools.add(int(pid))
                elif name:
                    found[int(pid)] = (name, cpu_ns)
                    parents.append(pid)
    return found, tools


def _stat(pid: int | str, words: slice) -> tuple[str, int]:
    """A process's name, and the sum of some of its processor times in ns; nothing if it has ended."""
    name, _, rest = _text(Path(f"/proc/{pid}/stat")).partition("(")[2].rpartition(")")
    return name, sum(map(int, rest.split()[words])) * _NS_A_TICK


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:  # it has ended
        return ""
