"""A copy of a bench may be a stranger's: what it has started is what the user names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from hwprof.bench.mirror import Mirror
from hwprof.bench.store import Plan, Settings, Store
from hwprof.cli import bench_session
from hwprof.errors import UsageError
from hwprof.remedies import catalogue
from tests.unit.bench.support import case, plan

COMMAND = {"power_meter": {"power_command": "touch here"}}


def opened(place: Path, of: Plan, power: dict[str, Any]) -> Store:
    store = Store.create(place / "made", of)
    url = f"file://{place}/there/bench-1"
    Mirror(url).put_all(store, done=[])
    return bench_session.opened(url, place / "brought", power, here=True)


def test_its_power_command_runs_where_the_user_gives_it_again(tmp_path: Path) -> None:
    of = plan(case())
    of.settings = Settings(power=COMMAND)
    for given in ({}, {"power_meter": {"power_command": "another"}}):
        with pytest.raises(UsageError, match="only as you say yourself") as raised:
            opened(tmp_path, of, given)
        assert (raised.value.remedy or "").startswith("--power-command 'touch here' beside --resume")
        assert [*(tmp_path / "brought").iterdir()] == [], "here it would be the user's own"
    assert opened(tmp_path, of, COMMAND).plan.settings.power == COMMAND
    assert opened(tmp_path / "own", plan(case()), {}).left() == [case()]


def test_its_environment_is_that_of_its_variants(tmp_path: Path) -> None:
    waits = msgspec.structs.replace(case(variants=("active_wait",)), environment={"LD_PRELOAD": "/tmp/x.so"})
    with pytest.raises(UsageError, match="its environment is not that of its variant"):
        opened(tmp_path, plan(waits), {})
    own = msgspec.structs.replace(waits, environment=catalogue.environment_of(("active_wait",)))
    assert own.environment and opened(tmp_path, plan(own), {}).left() == [own]


def test_a_folder_is_the_users_own(tmp_path: Path) -> None:
    of = plan(case())
    of.settings = Settings(power=COMMAND)
    store = Store.create(tmp_path, of)
    assert bench_session.opened(store.path, tmp_path, {}, here=True).plan.settings.power == COMMAND
