"""Memory by layer, of a model whose layers allocate, keep and touch a known amount."""

from __future__ import annotations

import polars as pl
import pytest

from hwprof.run.directory import RunDirectory
from tests.support.command import TESTS_MODELS, collect, hwprof
from tests.support.models.memory import KEPT_BYTES, PAGES, PASSING_BYTES


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    options = ("--model", "tests.support.models.memory:known", "--input-shape", "1,8", "--iterations", "6")
    place = tmp_path_factory.mktemp("memory")
    return collect(place, *options, "--passes", "measure,trace", environment=TESTS_MODELS)


def test_layers_have_what_they_allocate_keep_and_touch(run: RunDirectory) -> None:
    rows = {row["path"]: row for row in pl.read_csv(run.path / "memory.csv").to_dicts()}
    passing, keeping, touching = (rows[f"0.{name}"] for name in ("passing", "keeping", "touching"))
    assert (passing["allocated_bytes"], passing["freed_bytes"]) == (2 * PASSING_BYTES, 2 * PASSING_BYTES)
    assert (passing["kept_bytes"], passing["peak_bytes"], passing["largest_bytes"]) == (0, PASSING_BYTES, PASSING_BYTES)
    assert (keeping["allocated_bytes"], keeping["kept_bytes"]) == (KEPT_BYTES, KEPT_BYTES)
    assert keeping["freed_bytes"] == KEPT_BYTES, "that of three calls before, which two of the five iterations saw"
    assert touching["allocated_bytes"] == 0
    assert PAGES <= touching["page_faults"] <= PAGES + 10, "and what Python itself touches for the first time"
    own = rows["0 (own)"]
    assert (own["allocated_bytes"], own["kept_bytes"], own["freed_bytes"]) == (
        KEPT_BYTES,
        KEPT_BYTES,
        KEPT_BYTES,
    )
    whole = rows["whole"]
    assert whole["allocated_bytes"] >= 2 * PASSING_BYTES + 2 * KEPT_BYTES
    parts = [row["allocated_bytes"] for name, row in rows.items() if name != "whole"]
    assert sum(parts) == pytest.approx(whole["allocated_bytes"])


def test_a_page_has_them(run: RunDirectory) -> None:
    page = hwprof("report", "--memory", str(run.path))
    assert page.returncode == 0 and "0.touching" in page.stdout
    layer = hwprof("report", "--layer", "0", str(run.path))
    assert "Memory that torch allocates" in layer.stdout
    assert run.read("series").filter(pl.col("name").str.starts_with("allocator/"))["name"].n_unique() >= 3
