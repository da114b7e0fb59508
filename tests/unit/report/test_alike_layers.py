"""Layers that do the same are one row of the first screen."""

from __future__ import annotations

import io
import itertools
from pathlib import Path

import msgspec
import polars as pl
import pytest

from hwprof.analysis.alike_layers import alike
from hwprof.report.document import builder
from hwprof.report.document.document import Document
from hwprof.report.document.figures import Times
from hwprof.report.document.hottest import Hottest
from hwprof.report.document.layers import Layer, Layers
from hwprof.report.document.time_budget import Budget, BudgetPart, TimeBudget
from hwprof.report.text import alike_layers, first_layers, first_screen
from hwprof.report.text.alike_layers import hottest, mean, usual
from hwprof.report.text.console import make_console
from hwprof.report.text.page import Page
from hwprof.run.directory import RunDirectory
from tests.support import synthetic_model, synthetic_run, synthetic_samples
from tests.support import synthetic_variants as runs

ORDER = itertools.count()


def layer(like: Layer, path: str, ms: float, **more: object) -> Layer:
    time = msgspec.structs.replace(like.time, median_ns=1e6 * ms) if isinstance(like.time, Times) else None
    return msgspec.structs.replace(like, path=path, time=time, share=ms / 100, order=next(ORDER), **more)


def groups_of(layers: list[Layer]) -> list[list[str]]:
    """As the analysis finds them in its rows of these layers."""
    work = ("type", "input_shapes", "output_shapes", "more_shapes", "parameters", "macs", "bytes", "share")
    rows = [
        {
            "owner": one.path,
            "leaf": not one.own,
            "time_median_ns": one.time.median_ns if one.time is not None else None,
            **{name: getattr(one, name) for name in work},
        }
        for one in layers
    ]
    return alike(pl.DataFrame(rows, infer_schema_length=None))


def page_of(root: Path, layers: list[Layer], sort: str = "time", top: int | None = 3) -> Page:
    document = builder.build(runs.sampled(root), 8)
    part = document.part(Layers)
    assert part is not None
    paths = [one.path for one in sorted(layers, key=lambda one: -(one.share or 0.0))][:top]
    return Page(
        msgspec.structs.replace(
            document,
            parts={**document.parts, "layers": msgspec.structs.replace(part, rows=layers, alike=groups_of(layers))},
            hottest=Hottest(sort=sort, top=top, layers=paths),
        ),
        make_console(100, io.StringIO()),
    )


@pytest.fixture
def like(tmp_path: Path) -> Layer:
    document: Document = builder.build(runs.sampled(tmp_path / "like"), 8)
    part = document.part(Layers)
    assert part is not None
    return next(one for one in part.rows if one.time is not None and one.input_shapes is not None)


def rows(page: Page) -> list[tuple[str, int]]:
    return [(one.path, len(one.layers)) for one in hottest(page)]


def test_equal_blocks_are_one_row_and_make_room_for_others(like: Layer, tmp_path: Path) -> None:
    blocks = [layer(like, f"blocks.{number}.fc1", 6 + 0.1 * number) for number in range(6)]
    others = [layer(like, "stem", 7.0), layer(like, "head", 2.0), layer(like, "tail", 1.0)]
    page = page_of(tmp_path, [*blocks, *others])
    assert rows(page) == [("blocks.5.fc1", 6), ("stem", 1), ("head", 1)]
    first = hottest(page)[0]
    assert first.time_ns() == pytest.approx(1e6 * 37.5) and first.share == pytest.approx(0.375)
    assert rows(page_of(tmp_path / "all", [*blocks, *others], top=None))[-1] == ("tail", 1)


@pytest.mark.parametrize(
    "other",
    [{"macs": 7}, {"type": "Other"}, {"input_shapes": "1x9"}, {"parameters": 1}, {"ms": 1.0}, {"path": "a.b.2"}],
    ids=str,
)
def test_what_differs_in_class_shapes_work_time_or_name_is_not_alike(
    like: Layer, other: dict[str, object], tmp_path: Path
) -> None:
    different = layer(like, **{"path": "a.2", "ms": 5.0, **other})  # type: ignore[arg-type]
    assert {number for _, number in rows(page_of(tmp_path, [layer(like, "a.1", 5.0), different]))} == {1}
    same = layer(like, "a.2", 5.0)
    assert rows(page_of(tmp_path / "same", [layer(like, "a.1", 5.0), same])) == [("a.1", 2)]


def test_a_module_s_own_code_has_no_shapes_and_is_alike_all_the_same(like: Layer, tmp_path: Path) -> None:
    own = {"own": True, "input_shapes": None}
    assert rows(page_of(tmp_path, [layer(like, f"l.{one} (own)", 4.0, **own) for one in (0, 1)])) == [("l.0 (own)", 2)]
    unknown = [layer(like, f"l.{one}", 4.0, input_shapes=None) for one in (0, 1)]
    assert len(rows(page_of(tmp_path / "other", unknown))) == 2


def test_layers_that_were_never_called_have_no_row_beside_those_that_were(like: Layer, tmp_path: Path) -> None:
    called = [layer(like, f"a.{number}", 5.0) for number in range(3)]
    never = [msgspec.structs.replace(one, path=f"b.{one.path}", time=None, share=None) for one in called]
    assert rows(page_of(tmp_path, [*called, *never])) == [("a.0", 3)]
    assert len(rows(page_of(tmp_path / "none", never))) == 1


def test_sorted_by_something_else_each_layer_has_a_row(like: Layer, tmp_path: Path) -> None:
    alike = [layer(like, f"a.{number}", 5.0) for number in range(3)]
    assert rows(page_of(tmp_path, alike, sort="macs")) == [("a.0", 1), ("a.1", 1), ("a.2", 1)]


def test_the_first_screen_says_how_many(like: Layer, tmp_path: Path) -> None:
    alike = [layer(like, f"a.{number}", 5.0) for number in range(3)]
    page = page_of(tmp_path, [*alike, layer(like, "b", 1.0)])
    first_screen.show(page)
    assert isinstance(page.console.file, io.StringIO)
    lines = page.console.file.getvalue().splitlines()
    head = next(line for line in lines if line.startswith("layer "))
    assert head.split()[:2] == ["layer", "alike"]
    row = next(line for line in lines if line.startswith("a.0"))
    assert row.split()[1] == "3" and "15.0%" in row


def test_what_several_have() -> None:
    assert mean([None, 1.0, 2.0]) == 1.5 and mean([None]) is None
    assert usual(["a", None, "b", "b"]) == "b" and usual([None]) is None
    assert alike_layers.usual(iter(["x", "y"])) == "x"


def budget(path: str, **shares: float) -> Budget:
    parts = [
        BudgetPart(part=name, ns=share, share=share, threads_ns=share, threads_share=share)
        for name, share in shares.items()
    ]
    return Budget(path=path, elapsed_ns=1.0, samples=120, parts=parts)


def test_a_row_of_several_has_the_budget_of_all_of_them(like: Layer, tmp_path: Path) -> None:
    blocks = [layer(like, f"blocks.{number}.fc1", 6.0 - 0.1 * number) for number in range(6)]
    page = page_of(tmp_path, [*blocks, layer(like, "stem", 7.0)])
    part = page.document.part(TimeBudget)
    assert part is not None
    own = [budget("stem", layout=1.0), budget("blocks.0.fc1", waiting=1.0)]
    known = msgspec.structs.replace(part, layers=own, alike=[budget("blocks.0.fc1", compute=1.0)])
    parts = {**page.document.parts, "time_budget": known}
    page = Page(msgspec.structs.replace(page.document, parts=parts), page.console)
    cells = {column.header: column.cells for column in first_layers.columns(hottest(page), page)}
    assert cells["alike"] == ["6", ""] and cells["budget"] == [10 * "c", 10 * "l"]


def forty_alike(root: Path, monkeypatch: pytest.MonkeyPatch) -> RunDirectory:
    """A run of 40 equal convolutions, each of which one sample meets in each of three timed iterations: twice at work,
    and in the last one in a barrier."""
    conv = synthetic_model.Module("", "Conv2d", 80_000, 1_000_000, 100, ("1x8x80x80", "1x8x80x80"))
    modules = (*synthetic_model.MODULES, *(conv._replace(path=f"blocks.{number}.conv") for number in range(40)))
    for module in (synthetic_model, synthetic_run):
        monkeypatch.setattr(module, "MODULES", modules)
    run = synthetic_run.build(root, iterations=6)  # every other one counts its layers, and times are of the others
    synthetic_samples.add(run)
    spans = run.read("spans").filter(pl.col("pass") == "trace", pl.col("kind") == "iteration")
    waits = (pl.col("tid") == synthetic_samples.MAIN) & (pl.col("time_ns") > spans["begin_ns"].max())
    kernel = pl.when(waits).then(pl.lit(synthetic_samples.BARRIER, pl.Int32)).otherwise("kernel")
    runs.change_table(run, "samples", kernel.alias("kernel"))
    return run


def test_layers_of_which_each_has_too_few_samples_have_a_budget_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = builder.build(forty_alike(tmp_path, monkeypatch), 8)
    found, layers = document.part(TimeBudget), document.part(Layers)
    assert found is not None and layers is not None
    (group,) = layers.alike
    assert len(group) == 40 and not {one.path for one in found.layers} & set(group)
    (together,) = found.alike
    assert together.path == group[0] and together.samples == 40 * 3
    assert sum(part.share for part in together.parts) == pytest.approx(1)
    assert {part.part for part in together.parts} == {"compute", "waiting"}
    assert together.share("waiting") == pytest.approx(1 / 3, abs=0.02)
    assert all(part.share_low is not None and part.share_low < part.share for part in together.parts)
    page = Page(document, make_console(100, io.StringIO()))
    cells = {column.header: column.cells for column in first_layers.columns(hottest(page), page)}
    assert dict(zip(cells["alike"], cells["budget"], strict=True))["40"] == "cccccccwww"
