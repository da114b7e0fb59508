"""Which spans lie between which dumps: what the worker adds to callgrind's own file."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from hwprof.collector.contract import CountedSpan

FILE: Final = "edges.json"


class Edges(msgspec.Struct, frozen=True):
    """Edge 0 begins to collect, edge k ends part k: a span's parts are those after its first edge up to its last."""

    tid: int
    count: int
    spans: list[CountedSpan]

    def write(self, raw: Path) -> None:
        """Into the tool's folder."""
        (raw / FILE).write_bytes(msgspec.json.encode(self))

    @classmethod
    def read(cls, raw: Path) -> Edges:
        """Raises ``OSError``, ``msgspec.MsgspecError``."""
        return msgspec.json.decode((raw / FILE).read_bytes(), type=cls)
