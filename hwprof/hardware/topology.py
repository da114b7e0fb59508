"""Which logical processors are one core, and which have their memory near."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from hwprof.hardware.cores import cpu_list

CPU: Final = "sys/devices/system/cpu"
NODE: Final = "sys/devices/system/node"
SIBLINGS: Final = ("core_cpus_list", "thread_siblings_list")
"""The files that name a core's processors, the newer one first."""

Groups = tuple[tuple[int, ...], ...]


def siblings(root: Path, processors: Sequence[int]) -> Groups:
    """Of each core its logical processors, in order; none where the kernel does not tell of all of them."""
    found = [_first(root / CPU / f"cpu{number}/topology" / name for name in SIBLINGS) for number in processors]
    known = {group for group in found if group}
    return tuple(sorted(known)) if all(found) else ()


def nodes(root: Path) -> Groups:
    """Of each NUMA node that has processors these, by the node's number."""
    folders = [(int(one.name[4:]), one) for one in (root / NODE).glob("node*") if one.name[4:].isdecimal()]
    found = (_first([folder / "cpulist"]) for _, folder in sorted(folders))
    return tuple(group for group in found if group)


def _first(files: Sequence[Path] | Iterator[Path]) -> tuple[int, ...]:
    """The processors that the first of these files which can be read names."""
    for file in files:
        try:
            return tuple(cpu_list(file.read_text(encoding="ascii")))
        except (OSError, ValueError):
            continue
    return ()
