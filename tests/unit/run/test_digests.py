"""What changed since it was written is named, whichever of its bits it is."""

from __future__ import annotations

from pathlib import Path

import msgspec
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hwprof.errors import DamagedError, HwprofError
from hwprof.run import digests, manifest
from hwprof.run.directory import RunDirectory, write_table
from tests.support.synthetic_run import build

SEALED = digests.sealed(msgspec.json.format(b'{"name":"a","rows":[1,2.5,{"x":null}]}', indent=1) + b"\n")


def flipped(data: bytes, bit: int) -> bytes:
    changed = bytearray(data)
    changed[bit // 8 % len(data)] ^= 1 << bit % 8
    return bytes(changed)


def test_a_sealed_object_is_the_same_object() -> None:
    assert msgspec.json.decode(SEALED) == {"name": "a", "rows": [1, 2.5, {"x": None}], "seal": SEALED[-36:-4].decode()}
    digests.require_unbroken(SEALED)
    digests.require_unbroken(b"{}")


@given(st.integers(0, 8 * len(SEALED) - 1))
def test_no_bit_of_what_is_sealed_changes_without_a_word(bit: int) -> None:
    """Those of the seal itself may: what it is about is as it was."""
    changed = flipped(SEALED, bit)
    try:
        digests.require_unbroken(changed)
        found = msgspec.json.decode(changed)
    except ValueError:
        return
    assert found["name"] == "a" and found["rows"] == [1, 2.5, {"x": None}]


def series(run: RunDirectory, value: float) -> None:
    row = {"pass": "measure", "time_ns": 1, "name": "memory/rss", "unit": "B", "value": value}
    write_table(run.path / "part.parquet", "series", pl.DataFrame([row]))
    run.append("series", run.path / "part.parquet")


def with_series(root: Path, value: float = 1.0) -> RunDirectory:
    made = build(root)
    (made.path / "series.parquet").unlink(missing_ok=True)
    series(made, value)
    return made


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    return with_series(tmp_path)


@settings(max_examples=60, deadline=None)
@given(bit=st.integers(0, 1 << 20))
def test_no_bit_of_a_table_changes_without_a_word(bit: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    made = with_series(tmp_path_factory.mktemp("flip"))
    file = made.path / "series.parquet"
    file.write_bytes(flipped(file.read_bytes(), bit))
    with pytest.raises(DamagedError, match=r"^series\.parquet of this run is damaged: it is not what hwprof wrote"):
        RunDirectory.open(made.path).read("series")


def test_a_table_that_is_gone_or_another_runs_is_named(run: RunDirectory, tmp_path: Path) -> None:
    other = with_series(tmp_path / "other", 2.0)
    (other.path / "series.parquet").rename(run.path / "series.parquet")
    with pytest.raises(DamagedError, match="another run's"):
        RunDirectory.open(run.path).read("series")
    (run.path / "series.parquet").unlink()
    with pytest.raises(DamagedError, match="it is gone"):
        RunDirectory.open(run.path).read("series")


def test_whoever_is_ended_while_a_table_is_replaced_leaves_a_whole_run(
    run: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = RunDirectory.open(run.path).read("series")

    def ended(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(Path, "replace", lambda path, target: ended() if "series" in path.name else path.rename(target))
        series(run, 2.0)
    assert RunDirectory.open(run.path).read("series").equals(before)
    (run.path / "part.parquet").unlink(missing_ok=True)
    series(run, 2.0)
    assert RunDirectory.open(run.path).read("series")["value"].to_list() == [1.0, 2.0]


def test_a_manifest_of_which_a_figure_changed_is_refused(run: RunDirectory) -> None:
    file = run.path / "run.json"
    text = file.read_text()
    file.write_text(text.replace('"threads": 2', '"threads": 3', 1))
    assert file.read_text() != text
    with pytest.raises(HwprofError, match=r"run\.json is damaged: it is not what hwprof wrote"):
        RunDirectory.open(run.path)


def test_one_that_somebody_edited_with_a_tool_is_read(run: RunDirectory) -> None:
    file = run.path / "run.json"
    changed = msgspec.json.decode(file.read_bytes()) | {"name": "other"}
    file.write_bytes(msgspec.json.encode(changed))
    assert manifest.decode(file.read_bytes()).name == "other"


def test_polars_says_nothing_of_a_table_that_no_digest_is_of(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """An older version's, whose rows are scanned later: what is damaged in it is known before, and told once."""
    made = build(tmp_path)
    file = made.path / "counts.parquet"
    written, damaged = file.read_bytes(), 0
    assert "counts" not in made.manifest.tables
    for bit in range(5, 8 * len(written), max(1, 8 * len(written) // 300)):
        file.write_bytes(flipped(written, bit))
        run = RunDirectory.open(made.path)
        try:
            run.require_values("counts")
        except HwprofError:
            damaged += 1
            continue
        run.scan("counts").collect()
    assert damaged > 10
    assert capfd.readouterr().err == ""
