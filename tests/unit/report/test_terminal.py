from __future__ import annotations

import io
import os
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.console import Console

from hwprof.report import document, terminal
from hwprof.report.schema import Document
from hwprof.run.directory import RunDirectory
from tests.synthetic_run import build
from tests.unit.report import runs

SNAPSHOTS = Path(__file__).parent / "snapshots"
UPDATE = bool(os.environ.get("HWPROF_UPDATE_SNAPSHOTS"))
BUILDERS = {
    "complete": build,
    "without_pmu": runs.without_pmu,
    "multiplexed": runs.multiplexed,
    "cache": runs.with_cache_events,
    "failed": runs.without_passes,
}


def render(run: RunDirectory, width: int, encoding: str = "utf-8", **options: bool) -> str:
    return print_document(document.build(run, 3), width, encoding, **options)


def print_document(built: Document, width: int, encoding: str = "utf-8", **options: bool) -> str:
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding=encoding)
    console = Console(file=file, width=width, highlight=False, markup=False, emoji=False, **options)  # type: ignore[arg-type]
    terminal.render(built, console)
    file.flush()
    lines = [line.rstrip() for line in raw.getvalue().decode(encoding).splitlines()]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("name", ["complete", "without_pmu"])
def test_snapshot(name: str, width: int, tmp_path: Path) -> None:
    """HWPROF_UPDATE_SNAPSHOTS=1 writes them anew: read the difference before committing it."""
    run = BUILDERS[name](tmp_path)
    run.manifest.hwprof_version = "0.0.0"
    found = render(run, width)
    snapshot = SNAPSHOTS / f"{name}-{width}.txt"
    if UPDATE:
        snapshot.write_text(found, encoding="utf-8")
    assert found == snapshot.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", BUILDERS)
def test_no_line_is_longer_than_the_width_and_no_table_row_wraps(name: str, tmp_path: Path) -> None:
    built = document.build(BUILDERS[name](tmp_path), 3)
    rows = {width: print_document(built, width).splitlines() for width in (*range(40, 140, 7), 80, 120, 200, 300)}
    for width, lines in rows.items():
        assert max(map(cell_len, lines)) <= width
        if name != "failed":
            tables = "\n".join(lines).split("Stages\n")[1]
            assert sum(line.startswith(("model.", "mod")) for line in tables.splitlines()) == 3, width
            assert sum("inference" in line and "%" in line for line in tables.splitlines()) == 2, width


def test_missing_counters_are_dashes_with_one_footnote(tmp_path: Path) -> None:
    lines = render(runs.without_pmu(tmp_path), 200).splitlines()
    header = next(line for line in lines if line.startswith("layer "))
    row = next(line for line in lines if line.startswith("model.1.cv1.conv"))
    column = header.index("CPI")
    assert row[column : column + 3].strip() == "–"
    footnotes = [line for line in lines if line.startswith("  – not measured: ")]
    assert len([note for note in footnotes if runs.REASON in note]) == 1
    assert "CPI" in footnotes[0] and runs.REMEDY in footnotes[0]
    assert "1.40" not in "\n".join(lines)


def test_markup_in_reasons_is_text(tmp_path: Path) -> None:
    assert "[QEMU/KVM: -cpu host,pmu=on]" in " ".join(render(runs.without_pmu(tmp_path), 300).split())


def test_multiplexed_columns_are_marked(tmp_path: Path) -> None:
    text = render(runs.multiplexed(tmp_path), 120)
    assert "CPI†" in text and "GHz†" in text and "CPUs†" not in text
    assert "† the kernel multiplexed: counters ran part of the time (cycles 50% at least)" in " ".join(text.split())
    assert "†" not in render(build(tmp_path / "full"), 120)


def test_simulated_figures_are_marked_and_events_explained(tmp_path: Path) -> None:
    text = render(runs.with_cache_events(tmp_path), 120)
    assert "MPKI~" in text and "CPI~" not in text
    assert "~ simulated, not measured by hardware counters" in text
    assert "cache-misses: L2 cache misses (0x0964)" in text


def test_a_failed_run_shows_what_is_known(tmp_path: Path) -> None:
    text = render(runs.without_passes(tmp_path), 80)
    assert "measure: failed: out of memory" in text
    assert "no pass was completed: there is nothing to show" in text
    assert "Synthetic CPU" in text
    assert "Stages" not in text


def test_ascii_terminals_get_ascii(tmp_path: Path) -> None:
    text = render(build(tmp_path, iterations=4), 100, encoding="ascii")
    assert "0.918 +-0.018" in text and "####" in text


def test_no_colour_no_escape(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Colour carries nothing: the text is the same with and without."""
    run = build(tmp_path)
    plain = render(run, 100)
    assert "\x1b" not in plain
    coloured = render(run, 100, force_terminal=True)
    assert "\x1b[" in coloured
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[3" not in render(run, 100, force_terminal=True)
