from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from scripts.benchmarks import __main__ as command
from scripts.benchmarks.bars import Bar, Benchmark, Outcome, declared, evaluate

PAGE = """# Title

| model, 640 | forward | slower than bare | size |
| --- | --- | --- | --- |
| yolov7 | bare forward | +0.00% ± 0.00 | 46 MB (10 M events) |
| yolov7 | measure pass | +0.47% ± 0.26 | 21,884 |
| yolov8n, cpu-clock | measure pass | -1.20% ± 0.38 | |

## Another table

| model | forward | found |
| --- | --- | --- |
| yolov7 | measure pass | 13.9 s (13.7 … 14.1) |
"""


def _bar(
    *row: str, column: str = "slower than bare", at_most: float | None = 0.5, at_least: float | None = None
) -> Bar:
    return Bar(name="a bar", row=row, column=column, unit="%", at_most=at_most, at_least=at_least)


@pytest.mark.parametrize(
    ("bar", "figure"),
    [
        (_bar("yolov7", "measure pass"), 0.47),
        (_bar("yolov7", "bare forward", column="size"), 46.0),
        (_bar("yolov7", "measure pass", column="size"), 21884.0),
        (_bar("yolov7", "measure pass", column="found"), 13.9),
        (_bar("yolov8n, ", column="slower than bare"), -1.2),  # the begin of a cell
        (_bar("yolov8n, cpu-clock", column="size"), None),  # nothing in the cell
        (_bar("yolov7", "measure"), None),  # no such row: only what ends in a space is the begin of one
        (_bar("yolov5", "measure pass"), None),
        (_bar("yolov7", "measure pass", column="seconds"), None),
    ],
)
def test_a_figure_is_the_first_number_of_its_cell(bar: Bar, figure: float | None) -> None:
    assert evaluate([bar], PAGE) == [Outcome(bar, figure)]


@pytest.mark.parametrize(
    ("at_most", "at_least", "figure", "verdict"),
    [
        (20.0, None, 20.0, "met"),
        (20.0, None, 20.01, "short"),
        (None, 97.0, 97.0, "met"),
        (None, 97.0, 96.99, "short"),
        (20.0, None, None, "missing"),
    ],
)
def test_a_bar_is_met_on_its_bound_and_short_beyond_it(
    at_most: float | None, at_least: float | None, figure: float | None, verdict: str
) -> None:
    assert Outcome(_bar("row", at_most=at_most, at_least=at_least), figure).verdict == verdict


@pytest.mark.parametrize("bounds", [{}, {"at_most": 1.0, "at_least": 1.0}, {"at_mots": 1.0}])
def test_a_bar_without_one_bound_is_refused(bounds: dict[str, float]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"name": "bar", "row": ["row"], "column": "s", "unit": "s"} | bounds, Bar)


def test_every_benchmark_with_bars_is_a_module_with_a_page_that_its_bars_name() -> None:
    folder = Path(command.__file__).parent
    for name, benchmark in declared().items():
        assert benchmark.bars
        source = (folder / f"{name}.py").read_text(encoding="utf-8")
        assert f'Path("results/{name}.md")' in source
        for bar in benchmark.bars:
            assert bar.column.split()[0] in source


@pytest.mark.parametrize(("figure", "status"), [("19.9", 0), ("20.1", 1), ("", 1)])
def test_the_exit_code_is_one_where_a_bar_is_not_met(
    figure: str, status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bar = Bar(name="collect", row=("collect",), column="s", unit="s", at_most=20.0)
    monkeypatch.setattr(command, "declared", lambda: {"commands": Benchmark(bars=(bar,))})
    monkeypatch.setattr(command, "RESULTS", tmp_path)
    (tmp_path / "commands.md").write_text(f"| what | s |\n| --- | --- |\n| collect | {figure} |\n", encoding="utf-8")
    output = tmp_path / "bars.md"
    monkeypatch.setattr("sys.argv", ["benchmarks", "--keep-pages", "--output", str(output)])
    assert command.main() == status
    verdict = {"19.9": "met", "20.1": "short", "": "missing"}[figure]
    assert f"| {verdict} | commands |" in output.read_text(encoding="utf-8")
