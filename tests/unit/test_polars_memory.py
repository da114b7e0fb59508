"""polars keeps little for itself in hwprof's own processes, and works as ever in those of models."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from hwprof import polars_memory
from hwprof.polars_memory import ALLOCATOR, LITTLE, THREADS


@pytest.fixture(autouse=True)
def _nothing_is_set(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in (THREADS, ALLOCATOR):
        monkeypatch.setenv(name, "to be put back")
        monkeypatch.delenv(name)
    monkeypatch.setattr(os, "cpu_count", lambda: 16)
    yield
    polars_memory._own.clear()


def test_many_processors_are_no_reason_for_as_many_threads() -> None:
    polars_memory.keep_little()
    assert (os.environ[THREADS], os.environ[ALLOCATOR]) == ("4", LITTLE)
    models = polars_memory.environment_of_models()
    assert THREADS not in models and models.keys() == os.environ.keys() - {THREADS}


def test_few_processors_say_how_many_threads_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    polars_memory.keep_little()
    assert THREADS not in os.environ


def test_what_the_user_has_set_stays_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(THREADS, "7")
    monkeypatch.setenv(ALLOCATOR, "narenas:1")
    polars_memory.keep_little()
    models = polars_memory.environment_of_models()
    assert (models[THREADS], models[ALLOCATOR]) == ("7", "narenas:1") == (os.environ[THREADS], os.environ[ALLOCATOR])


@pytest.mark.parametrize("odd", ["", "many", "-1", "2.5", "0", "9" * 20])
def test_no_number_of_threads_is_none(odd: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(THREADS, odd)
    polars_memory.keep_little()
    assert os.environ[THREADS] == "4"
