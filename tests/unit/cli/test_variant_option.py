"""``--variant``."""

from __future__ import annotations

import pytest

from hwprof.cli.variants import of_names
from hwprof.errors import HwprofError, UsageError
from hwprof.remedies import catalogue
from hwprof.unavailable import Unavailable
from hwprof.workload.spec import WorkloadSpec

SPEC = WorkloadSpec(model="yolov8n")


def test_without_one_nothing_is_changed() -> None:
    for texts in ([], ["eager"], [" "]):
        assert of_names(texts).of(SPEC) == SPEC and of_names(texts).environment == {}


def test_several_are_done_together_in_whatever_way_they_are_named() -> None:
    found = of_names(["channels_last,THREADS=3", "keep_memory", "channels_last"])
    spec = found.of(SPEC)
    assert spec.variants == ("channels_last", "threads=3", "keep_memory")
    assert spec.changes == ("channels_last",) and spec.threads == 3 and spec.fuse
    assert found.environment.keys() == {"MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_"}
    assert catalogue.environment_of(spec.variants) == found.environment


def test_what_is_no_change_of_the_process_is_one_of_the_workload() -> None:
    spec = of_names(["unfused"]).of(SPEC)
    assert not spec.fuse and spec.changes == ()


def test_two_of_one_kind_do_not_go_together() -> None:
    with pytest.raises(UsageError, match="int8 and bfloat16 do not go together"):
        of_names(["bfloat16,int8"])


def test_what_another_program_runs_has_no_layout_of_torchs() -> None:
    for texts in (["onnxruntime,channels_last"], ["channels_last,onnxruntime"], ["bfloat16", "openvino"]):
        with pytest.raises(UsageError, match="do not go together"):
            of_names(texts)
    assert of_names(["unfused,onnxruntime,threads=1"]).of(SPEC).changes == ("onnxruntime",)


def test_one_that_there_is_not() -> None:
    with pytest.raises(UsageError, match="no remedy or variant magic"):
        of_names(["magic"])


def test_one_that_this_machine_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue, "ready", lambda name: Unavailable(f"{name} is not installed", "pip install it"))
    with pytest.raises(HwprofError, match="--variant tcmalloc: tcmalloc is not installed"):
        of_names(["tcmalloc"])
