"""A bench that something ends: what was measured by then is written, copied and shown."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hwprof.bench import cluster
from hwprof.bench.campaign import Progress
from hwprof.bench.result import Result
from hwprof.bench.store import Store
from hwprof.cli import bench_session
from hwprof.errors import HwprofError
from tests.unit.bench.support import case, plan, result

CASES = [case(imgsz=size) for size in (320, 640)]


def ended_by(error: BaseException, done: int) -> Callable[[Store, str, Progress, Callable[[Result], None]], None]:
    """A cluster that does so many cases before."""

    def carry_out_all(store: Store, _: str, __: Progress, told: Callable[[Result], None]) -> None:
        for one in CASES[:done]:
            store.begin(one)
            store.keep(result(one, 7_000_000))
            told(result(one, 7_000_000))
        raise error

    return carry_out_all


@pytest.mark.parametrize("error", [HwprofError("it is gone", "go on"), KeyboardInterrupt()])
def test_what_was_measured_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: BaseException
) -> None:
    of = plan(*CASES)
    of.store = f"file://{tmp_path}/there"
    store = Store.create(tmp_path / "here", of)
    monkeypatch.setattr(cluster, "carry_out_all", ended_by(error, 1))
    with pytest.raises(HwprofError) as raised:
        bench_session.carry_out(store, "text", 100, "here:1")
    if isinstance(error, KeyboardInterrupt):
        assert raised.value.message == f"interrupted; 1 case left: {store.again('here:1')} goes on"
    else:
        assert raised.value is error
    assert "7.00" in capsys.readouterr().out
    (there,) = (tmp_path / "there").iterdir()
    for place in (store.path, there):
        assert (place / "bench.md").exists() and (place / "table.json").exists()


def test_no_message_names_a_folder_that_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    of = plan(*CASES)
    of.store = f"file://{tmp_path}/there"
    store = Store.create(tmp_path / "here", of)
    monkeypatch.setattr(cluster, "carry_out_all", ended_by(KeyboardInterrupt(), 0))
    with pytest.raises(HwprofError) as raised:
        bench_session.carry_out(store, "text", 100, "here:1")
    assert raised.value.message == "interrupted"
    assert [one for place in ("here", "there") for one in (tmp_path / place).iterdir()]
    bench_session.discard_unbegun(store)
    assert not [one for place in ("here", "there") for one in (tmp_path / place).iterdir()]


def test_a_bench_without_cases_says_so_before_anything_is_done(tmp_path: Path) -> None:
    store = Store.create(tmp_path, plan())
    with pytest.raises(HwprofError, match="has no cases"):
        bench_session.carry_out(store, "text", 80, None)
    assert not (store.path / ".lock").exists()
