"""What a bench leaves beside its cases."""

from __future__ import annotations

from pathlib import Path

import pytest

from hwprof.bench import files
from hwprof.bench.rows import rows_of
from hwprof.bench.store import Store
from tests.unit.bench.support import case, plan, result


@pytest.mark.parametrize(("model", "of_images"), [("yolov8n", True), ("mine:model", False)])
def test_the_heading_speaks_of_the_columns_that_are_there(tmp_path: Path, model: str, of_images: bool) -> None:
    of = case(model=model)
    store = Store.create(tmp_path, plan(of))
    (_, how, *_) = files.heading(store, rows_of([result(of, 40_000_000)], None))
    assert how.startswith("median of a forward") and how.endswith("; images/s of the model alone") == of_images
