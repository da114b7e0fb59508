"""What becomes of a case that Ray has given to a machine."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hwprof.bench.cluster_driver import MOST_LOSSES, _kept
from hwprof.bench.store import Store
from tests.unit.bench.support import case, plan


class OfRayError(Exception):
    """What Ray itself raises."""


class OfTheTaskError(OfRayError):
    """What the task has raised."""


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.create(tmp_path, plan(case()))


def ray_that_raises(error: Exception) -> Any:
    def get(_: object) -> None:
        raise error

    return SimpleNamespace(get=get, exceptions=SimpleNamespace(RayError=OfRayError, RayTaskError=OfTheTaskError))


def test_a_case_that_is_lost_again_and_again_has_failed(store: Store) -> None:
    losses: Counter[str] = Counter()
    ray = ray_that_raises(OfRayError("the worker died"))
    for _ in range(MOST_LOSSES - 1):
        assert not _kept(store, case(), ray, None, losses) and store.results() == []
    assert _kept(store, case(), ray, None, losses)
    (result,) = store.results()
    assert result.failure is not None
    assert result.failure.message == "on the cluster: who was at it was lost 3 times: the worker died"


def test_one_that_raises_has_failed_at_once(store: Store) -> None:
    assert _kept(store, case(), ray_that_raises(OfTheTaskError("no room")), None, Counter())
    (result,) = store.results()
    assert result.failure is not None and result.failure.message == "on the cluster: no room"
