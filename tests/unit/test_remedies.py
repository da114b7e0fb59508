"""The remedies that there are, and what a machine can try of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from hwprof.errors import UsageError
from hwprof.remedies import catalogue
from hwprof.session.trials.campaign import combinations, to_adopt
from hwprof.unavailable import Unavailable


def ready(name: str) -> catalogue.Ready:
    found = catalogue.ready(name, lambda library: Path("/lib") / library)
    assert isinstance(found, catalogue.Ready)
    return found


@pytest.mark.parametrize("name", [name for name in catalogue.remedies() if name != catalogue.THREADS])
def test_every_one_changes_something_and_says_what_to_type(name: str) -> None:
    one = ready(name)
    assert one.change or one.environment
    assert one.adopt and not any("{" in line and "}" in line for line in one.adopt)
    exported = " ".join(one.adopt)
    assert all(f"{key}={value}" in exported for key, value in one.environment.items())


def test_every_change_is_one_that_a_process_can_make() -> None:
    changes = pytest.importorskip("hwprof.workload.changes")
    known = changes.AFTER.keys() | changes.BEFORE.keys()
    assert {one.change for one in catalogue.remedies().values()} - {None} == known


def test_a_number_of_threads_is_part_of_the_name() -> None:
    one = ready("threads=4")
    assert (one.threads, one.title, one.adopt) == (4, "4 threads", ("torch.set_num_threads(4)",))
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
    lines = to_adopt([ready("compile"), ready("tcmalloc"), ready("channels_last"), ready("threads=2")])
    assert [line.partition("(")[0] for line in lines] == [
        "export LD_PRELOAD=/lib/libtcmalloc_minimal.so.4",
        "model = model.to",
        "x = x.to",
        "torch.set_num_threads",
        "torch._inductor.config.freezing = True",
        "model = torch.compile",
    ]
