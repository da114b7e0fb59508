"""Which cases a bench has."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwprof.bench.matrix import EAGER, MOST_CASES, Case, cases
from hwprof.cli.variants import of_names
from hwprof.errors import UsageError
from hwprof.workload.spec import WorkloadSpec
from tests.unit.bench.support import SPEC, case


def ways(*names: str) -> list[Case]:
    found = [of_names([name]) for name in names]
    return [Case(workload=one.of(WorkloadSpec(model="")), environment=one.environment) for one in found]


def test_every_combination_is_there_once() -> None:
    models = [SPEC, WorkloadSpec(model="yolov5n")]
    found = cases(models, ways("eager", "channels_last,bfloat16"), [320, 640], [1, 8], [None, 2])
    assert len(found) == len({one.key for one in found}) == 2 * 2 * 2 * 2 * 2
    assert len(cases([SPEC, SPEC], ways("eager", "eager"), [640, 640], [1], [None])) == 1
    assert [one.workload.model for one in found] == ["yolov8n"] * 16 + ["yolov5n"] * 16


def test_a_variant_brings_what_it_changes() -> None:
    (found,) = cases([SPEC], ways("unfused,threads=3,keep_memory,channels_last"), [320], [2], [None])
    spec = found.workload
    assert (spec.fuse, spec.threads, spec.imgsz, spec.batch) == (False, 3, 320, 2)
    assert spec.changes == ("channels_last",) and "MALLOC_TRIM_THRESHOLD_" in found.environment
    assert found.variant == "unfused+threads=3+keep_memory+channels_last"
    assert found.label == "yolov8n unfused+threads=3+keep_memory+channels_last 320 b2 t3"


def test_a_number_of_threads_stands_beside_the_usual_one() -> None:
    eager, two, both = cases([SPEC], ways("eager", "threads=2", "threads=2,channels_last"), [320], [2], [None])
    assert eager.place == two.place == both.place
    one, other = cases([SPEC], ways("eager"), [320], [2], [1, 2])
    assert one.place != other.place
    with pytest.raises(UsageError, match="threads both as a variant and as --threads"):
        cases([SPEC], ways("eager", "threads=2"), [320], [2], [1])


def test_models_of_the_users_have_their_own_sizes_and_batches() -> None:
    found = cases([WorkloadSpec(model="package.module:factory")], ways("eager"), [320, 640], [1, 8], [1, 2])
    assert [one.label for one in found] == [f"package.module:factory {EAGER} t{number}" for number in (1, 2)]


@given(st.text(max_size=300), st.text(max_size=30))
def test_a_cases_folder_is_one_plain_name_whatever_the_models(model: str, weights: str) -> None:
    key = case(model=model, weights=weights).key
    assert key not in (".", "..") and "/" not in key and "\0" not in key and len(key) < 100
    assert key.isascii() and key.replace("-", "").isalnum()
    assert key != case(model=model + "x", weights=weights).key


def test_it_is_the_same_after_it_was_kept() -> None:
    one = case(variants=("channels_last",), threads=2)
    again = msgspec.json.decode(msgspec.json.encode(one), type=Case)
    assert again == one and again.key == one.key


def test_nobody_means_a_million_cases() -> None:
    with pytest.raises(UsageError, match=f"more than {MOST_CASES:,} cases"):
        cases([SPEC], ways("eager"), list(range(32, 1032)), list(range(1, 100)), [None])
