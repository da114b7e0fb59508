"""How many threads may be asked for, and where."""

from __future__ import annotations

import os

import pytest
from click.testing import CliRunner

from hwprof.cli import thread_numbers
from hwprof.cli.bench import bench_command
from hwprof.cli.collect import collect_command
from hwprof.cli.try_remedies import _asked
from hwprof.errors import HwprofError, UsageError

AT_MOST = "at most 8 here, 4 a processor"


@pytest.fixture(autouse=True)
def two_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)


@pytest.mark.parametrize(
    ("threads", "oversubscribe", "says"),
    [
        (8, False, ""), (9, False, f"{AT_MOST}. Try: --oversubscribe"), (9, True, ""),
        (1024, True, ""), (1025, True, "at most 1024 here. Try: --threads 1024"),
        (100_000, False, f"{AT_MOST}. Try: --threads 8"), (8, None, ""), (9, None, f"{AT_MOST}. Try: --threads 8"),
    ],
)  # fmt: skip
def test_a_team_that_exhausts_the_machine_is_refused_and_a_large_one_has_to_be_named(
    threads: int, oversubscribe: bool | None, says: str
) -> None:
    told = ""
    try:
        thread_numbers.check_threads(threads, oversubscribe=oversubscribe)
    except UsageError as error:
        told = str(error)
    assert says in told and bool(says) == bool(told)
    assert ("--oversubscribe" in told) == (says.endswith("oversubscribe"))


def refused(command: object, *arguments: str) -> str:
    done = CliRunner().invoke(command, arguments)  # type: ignore[arg-type]
    assert isinstance(done.exception, HwprofError) and done.exception.exit_code == 2, done.output
    return str(done.exception)


def test_a_variants_threads_are_checked_as_those_of_the_option() -> None:
    own = ("--model", "tests.support.models:tiny", "--input-shape", "1,3,8,8")
    models = ("--models", own[1])
    assert f"threads=99: {AT_MOST}. Try: --oversubscribe" in refused(collect_command, *own, "--variant", "threads=99")
    assert "at most 1024" in refused(collect_command, *own, "--variant", "threads=2000", "--oversubscribe")
    assert refused(collect_command, *own, "--threads", "1", "--variant", "threads=2").startswith("threads both as a")
    assert f"threads=99: {AT_MOST}. Try: threads=8" in refused(
        bench_command, "--models", own[1], "--variants", "threads=99"
    )
    assert f"--threads 99: {AT_MOST}. Try: --threads 8" in refused(bench_command, *models, "--threads", "99")
    with pytest.raises(UsageError, match=f"threads=99: {AT_MOST}. Try: threads=8"):
        _asked("threads=99")
