"""The page of memory where no layer has any: what the process had is there all the same."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from hwprof.errors import HwprofError
from hwprof.report.document import builder
from hwprof.report.document.hot_memory import select
from hwprof.report.text import hot_memory
from hwprof.report.text.page import Page
from hwprof.run.details import MemoryDetail, as_json
from hwprof.run.manifest import CollectorRecord
from hwprof.run.roles import Role
from tests.support.synthetic_run import build


def printed(root: Path, *collectors: CollectorRecord) -> str:
    run = build(root)
    kept = [one for one in run.manifest.passes[0].collectors if one.role is not Role.MEMORY]
    run.manifest.passes[0].collectors = [*kept, *collectors]
    for record in run.manifest.passes:
        record.collectors = [one for one in record.collectors if one.role is not Role.OPERATORS or one in collectors]
    run.save_manifest()
    document = builder.build(run)
    text = io.StringIO()
    page = Page(document, Console(file=text, width=120, highlight=False, markup=False))
    hot_memory.show(select(document, 5), page)
    return text.getvalue()


PROCESS = CollectorRecord(
    name="memory",
    role=Role.MEMORY,
    state="ran",
    detail=as_json(MemoryDetail(period_ms=50, peak_rss_bytes=200_000_000, page_bytes=4096)),
)


def test_torch_that_allocated_nothing_was_watched_all_the_same(tmp_path: Path) -> None:
    text = printed(tmp_path, PROCESS, CollectorRecord(name="torch_profiler", role=Role.OPERATORS, state="ran"))
    assert "peak RSS 200 MB (pass measure)" in text
    assert "no memory by layer: torch.profiler saw no allocation in the timed iterations" in text


def test_where_nobody_watched_the_process_is_there(tmp_path: Path) -> None:
    text = printed(tmp_path, PROCESS)
    assert "peak RSS 200 MB (pass measure)" in text and "nobody watched torch's allocations" in text


def test_where_nothing_is_known_the_reason_is(tmp_path: Path) -> None:
    with pytest.raises(HwprofError, match="nobody watched torch's allocations"):
        printed(tmp_path)
