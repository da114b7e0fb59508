"""What a bench leaves beside its cases."""

from __future__ import annotations

from pathlib import Path

import msgspec
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


def test_what_can_be_written_is_and_what_cannot_is_named(tmp_path: Path) -> None:
    """A folder in the place of one, and a machine whose name no folder can have."""
    one = msgspec.structs.replace(result(case(), 40_000_000), machine="m" * 300)
    store = Store.create(tmp_path, plan(case()))
    (store.path / "bench.md").mkdir()
    written, why = files.write(store, rows_of([one], None))
    assert written == ["bench.csv", "table.json", "bench.html", "bench.svg"]
    assert all((store.path / name).is_file() for name in written)
    assert why is not None and why.message.startswith(f"cannot write to {store.path}/bench.md: ")
