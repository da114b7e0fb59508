"""A process that a remedy is tried in: ``python -m hwprof.workload.contestant ENTRY.json SAYS HEARS WEIGHTS PARENT``.

Imports torch only when the kernel knows that it is to end with its parent (``turns``): that import takes seconds.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from hwprof import processes


def main(arguments: Sequence[str]) -> int:
    """The exit code."""
    says, hears, weights, parent = map(int, arguments[1:5])
    processes.end_with_parent(parent)
    from hwprof.workload.turns import carry_out

    return carry_out(Path(arguments[0]), says, hears, weights)


if __name__ == "__main__":
    processes.leave(main(sys.argv[1:]))
