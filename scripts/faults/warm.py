"""Processes that are ready to be copied, one a thread of the campaign."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from scripts.faults.case import Case, Outcome, text_of

ROOT = Path(__file__).parents[2]


class Warm:
    """One such process."""

    def __init__(self, imports: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "scripts.faults.forked", imports],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def carry_out(self, case: Case, folder: Path) -> list[Outcome]:
        """The case in its folder, to its end: of one process."""
        assert self._process.stdin is not None and self._process.stdout is not None
        order = {
            "arguments": case.arguments, "call": case.call, "folder": str(folder), "limit_s": case.limit_s,
            "quiet": case.quiet, "environment": case.environment, "limits": case.limits, "streams": case.streams,
        }  # fmt: skip
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        out, err, events = (text_of(folder / name, case) for name in (".out", ".err", ".events"))
        return [Outcome(out=out, err=err, events=events.splitlines(), **answer)]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
