"""Models that other programs than PyTorch run: what comes out, and how much of their time is told by layer."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import polars as pl
import pytest
import torch
from torch.utils import _pytree as pytree

from hwprof.analysis.owners import ROOT, ROOT_NAME
from hwprof.run.directory import RunDirectory
from hwprof.workload import factory
from hwprof.workload.module_call import stand_in_of
from hwprof.workload.protocol import Call
from hwprof.workload.runtimes import exported, onnx_runtime, temporary
from hwprof.workload.runtimes.runtime import Profile, RuntimeCall
from hwprof.workload.spec import WorkloadSpec
from tests.support.command import TESTS_MODELS, hwprof, messages
from tests.support.models.runtimes import several
from tests.support.requirements import missing, require_module
from tests.support.traced import Traced

RUNTIMES: Final = ("onnxruntime", "openvino")
CALLS: Final = 5
MAPPED: Final = 0.95
"""Of the operators' time, that is told by layer."""


def watched(call: Call, runtime: str) -> tuple[Any, Any, Profile]:
    """What the model gives, what it gives in the runtime, and the profile of ``CALLS`` calls."""
    from hwprof.workload.changes import of_built

    with torch.inference_mode():
        expected = call.run()
        take_back = of_built([call.module], [runtime])
        stand_in = stand_in_of(call.module)
        stand_in.can_be_watched = True
        stand_in.watch()
        found = [call.run() for _ in range(CALLS)][-1]
        take_back()
        (profile,) = stand_in.profiles()
        again = call.run()
    assert all(torch.equal(one, other) for one, other in zip(tensors(again), tensors(expected), strict=True))
    return expected, found, profile


def require_runtime(name: str) -> None:
    """OpenVINO is not imported by its own name: that would tell its maker."""
    require_module("onnxscript")
    if find_spec(name) is None:
        missing(f"the Python module {name}")


def tensors(value: Any) -> list[torch.Tensor]:
    return [leaf for leaf in pytree.tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def is_close(found: Any, expected: Any) -> bool:
    """But for the order of sums."""
    pairs = zip(tensors(found), tensors(expected), strict=True)
    return all(torch.allclose(one, other, rtol=1e-3, atol=1e-4 * float(other.abs().max())) for one, other in pairs)


def yolo(name: str) -> Call:
    require_module("ultralytics")
    workload = factory.build(WorkloadSpec(model=name, imgsz=320))
    workload.prepare()
    return workload.forwards()[0]


def share_in_layers(events: Sequence[tuple[int, int]], call: RuntimeCall) -> float:
    """Which part of the time of operators (begin and end) lies in layers' spans."""
    inside = [(span.begin_ns, span.end_ns) for span in call.spans if span.path]
    mapped = sum(end - begin for begin, end in events if any(low <= begin and end <= high for low, high in inside))
    return mapped / sum(end - begin for begin, end in events)


@pytest.mark.parametrize("model", ["yolov8n", "yolov5n"])
def test_the_time_of_onnx_runtime_s_operators_is_told_by_layer(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    require_runtime("onnxruntime")
    raw: list[tuple[bytes, int]] = []
    read = onnx_runtime.runs_of

    def keep(file: io.BufferedReader, begin_ns: int) -> Any:
        raw.append((file.read(), begin_ns))
        return read(io.BufferedReader(io.BytesIO(raw[-1][0])), begin_ns)

    monkeypatch.setattr(onnx_runtime, "runs_of", keep)
    expected, found, profile = watched(yolo(model), "onnxruntime")
    assert pytree.tree_structure(found) == pytree.tree_structure(expected) and is_close(found, expected)
    ((written, begin_ns),) = raw
    events = [event for event in json.loads(written) if event["cat"] == "Node"]
    calls = list(profile.calls)
    each, left = divmod(len(events), len(calls))
    assert len(calls) == CALLS and left == 0
    for number, call in enumerate(calls):
        own = events[number * each : (number + 1) * each]
        times = [(begin_ns + 1000 * one["ts"], begin_ns + 1000 * (one["ts"] + one["dur"])) for one in own]
        assert share_in_layers(times, call) >= MAPPED


FIRST, TWICE, LAST, LINEAR = 3 * 16 * 9 * 48**2, 16 * 16 * 9 * 48**2, 16 * 16 * 48**2, 24 * 64 * 16 * 24
ENCODER: Final = {
    "self_attn": 16 * 24 * (4 * 64 + 2 * 16 * 24) * 64,
    "linear1": 16 * 24 * 64 * 128,
    "linear2": 16 * 24 * 64 * 128,
}


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_work_is_told_where_it_is_done_and_none_of_it_twice(tmp_path: Path, runtime: str) -> None:
    """A layer that is done in several places has no more than its part in each, and a splinter of it has none."""
    require_runtime(runtime)
    options = ("--model", "tests.support.models.runtimes:mixed", "--threads", "1", "--iterations", "6", "--no-peaks")
    quick = ("--passes", "measure", "--no-instrumented", "--variant", runtime)
    done = hwprof("collect", *options, *quick, cwd=tmp_path, environment=TESTS_MODELS)
    assert done.returncode == 0, done.stderr
    run = RunDirectory.latest(tmp_path / "results")
    rows = {row["path"]: row for row in run.read("layers").to_dicts()}
    own = {path: row["macs"] if row["leaf"] else row["own_macs"] for path, row in rows.items()}
    whole = FIRST + 2 * TWICE + LAST + LINEAR + sum(ENCODER.values())
    assert sum(own.values()) == whole
    assert sum(row["parameters"] for row in rows.values() if row["leaf"]) <= max(
        row["parameters"] for row in rows.values()
    )
    doing = {path: macs for path, macs in own.items() if macs}
    assert not {"clip", "drop", "relu", "leaky"} & doing.keys()
    assert sorted(doing.values()) == sorted(
        [FIRST, LAST, LINEAR, *ENCODER.values(), *([TWICE, TWICE] if "twice+clip" in doing else [2 * TWICE])]
    )
    assert runtime != "onnxruntime" or "last+add+relu" in doing, "the sum is where the runtime adds"
    spans = run.read("spans").filter(pl.col("kind") == "layer")
    assert set(doing) <= set(spans["path"]), "what has work has a time"


def test_onnx_runtime_s_clock_is_what_its_calls_lie_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own events of whole calls begin and end within the calls by CLOCK_MONOTONIC, to the error that is told."""
    from hwprof.collector import clocks

    require_runtime("onnxruntime")
    raw: list[tuple[bytes, int]] = []

    def keep(file: io.BufferedReader, begin_ns: int) -> Iterator[Any]:
        raw.append((file.read(), begin_ns))
        return iter([])

    monkeypatch.setattr(onnx_runtime, "runs_of", keep)
    model, arguments = several()
    _, _, profile = watched(Call(model, arguments), "onnxruntime")
    assert profile.clock is not None
    record = clocks.fit(profile.clock, profile.marks)
    error_ns = record.error_ns + profile.unit_ns
    assert error_ns < 1_000_000
    ((written, begin_ns),) = raw
    runs = [event for event in json.loads(written) if event["name"] == onnx_runtime.RUN]
    assert len(runs) == len(profile.marks) == CALLS
    for event, (_, _, called_ns), (_, _, next_ns) in zip(
        runs, profile.marks, [*profile.marks[1:], (0, 0, 0)], strict=True
    ):
        begin = clocks.to_monotonic(record, begin_ns + 1000 * event["ts"])
        assert begin >= called_ns - error_ns
        assert not next_ns or begin + 1000 * event["dur"] <= next_ns + error_ns


@pytest.mark.parametrize("model", ["yolov8n", "yolov5n"])
def test_the_time_of_openvino_s_operators_is_told_by_layer(model: str) -> None:
    require_runtime("openvino")
    expected, found, profile = watched(yolo(model), "openvino")
    assert pytree.tree_structure(found) == pytree.tree_structure(expected) and is_close(found, expected)
    calls = list(profile.calls)
    assert len(calls) == CALLS and profile.clock is None
    for call in calls:  # operators stand one after the other from its begin on
        last_ns = max(span.end_ns for span in call.spans)
        within = sorted((span.begin_ns, span.end_ns) for span in call.spans if span.path.count(".") == 1)
        assert call.begin_ns <= within[0][0] and last_ns <= call.end_ns
        assert sum(end - begin for begin, end in within) >= MAPPED * (last_ns - call.begin_ns)


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_several_inputs_and_nested_outputs(runtime: str) -> None:
    require_runtime(runtime)
    model, (image, words) = several()
    expected, found, _ = watched(Call(model, (image,), {"words": words, "scale": 0.5}), runtime)
    assert pytree.tree_structure(found) == pytree.tree_structure(expected) and is_close(found, expected)
    assert found["maps"][1][1] == 3


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_weights_may_lie_in_a_file_of_their_own(runtime: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the model's file could not hold them; nothing is left of either."""
    require_runtime(runtime)
    monkeypatch.setattr(exported, "MOST_BYTES", 0)
    before = set(Path(tempfile.gettempdir()).glob(f"{temporary.PREFIX}*"))
    model, arguments = several()
    expected, found, profile = watched(Call(model, arguments), runtime)
    assert is_close(found, expected) and len(list(profile.calls)) == CALLS
    assert set(Path(tempfile.gettempdir()).glob(f"{temporary.PREFIX}*")) <= before


@pytest.fixture(scope="module", params=RUNTIMES)
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    runtime: str = request.param
    require_runtime(runtime)
    folder = tmp_path_factory.mktemp(runtime)
    options = ("--passes", "measure", "--no-instrumented", "--iterations", "10", "--no-peaks", "--variant", runtime)
    done = hwprof(
        "collect", "--model", "tests.support.models.runtimes:several", *options, cwd=folder, environment=TESTS_MODELS
    )
    assert done.returncode == 0, done.stderr
    return RunDirectory.latest(folder / "results")


def test_a_run_has_the_spans_and_rows_of_layers(run: RunDirectory) -> None:
    spans = run.read("spans").filter(~pl.col("warmup"))
    timed = [one.index for one in run.manifest.passes[0].iterations if not (one.warmup or one.bare)]
    layers = spans.filter(kind="layer")
    assert sorted(layers["iteration"].unique()) == timed
    for path in ("stem+bn", "blocks.0.conv+act", "blocks.1.conv+act", "words", "head"):
        assert layers.filter(path=path).unique(["iteration", "call"]).height == len(timed)
    around = layers.join(layers.select(parent="span", low="begin_ns", high="end_ns"), on="parent")
    assert around.height == layers.filter(pl.col("path") != "").height  # all but the model lie in a layer
    assert around.filter((pl.col("begin_ns") < pl.col("low")) | (pl.col("end_ns") > pl.col("high"))).is_empty()
    rows = {row["path"]: row for row in run.read("layers").iter_rows(named=True)}
    assert rows["stem+bn"]["macs"] == 2 * 96 * 96 * 3 * 8 * 9 and rows["stem+bn"]["type"] == "Conv2d+BatchNorm2d"
    assert "stem" not in rows and "bn" not in rows
    assert set(layers["path"]) <= set(rows)


def test_a_run_says_how_far_its_outputs_are_from_eager_ones(run: RunDirectory) -> None:
    workload = run.manifest.workload
    assert workload is not None and workload.variant is not None and workload.variant.outputs is not None
    assert workload.variant.outputs.largest < 1e-3 and workload.variant.outputs.tensors == 3


def test_the_trace_has_each_layer_s_slice(run: RunDirectory) -> None:
    trace = Traced(run, run.path / "trace.pftrace")
    found, expected = (
        {key: number for key, number in slices.items() if key[1] == "layer" and key[2] not in (ROOT, ROOT_NAME)}
        for slices in (trace.found(), trace.expected())
    )
    assert found == expected and any(key[2] == "stem+bn" for key in found)


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_what_cannot_be_exported_is_said_in_a_line(runtime: str, tmp_path: Path) -> None:
    require_runtime(runtime)
    done = hwprof(
        "collect",
        "--model",
        "tests.support.models.runtimes:deciding",
        "--variant",
        runtime,
        cwd=tmp_path,
        environment=TESTS_MODELS,
    )
    (said,) = messages(done.stderr)
    assert done.returncode == 1
    assert said.startswith("hwprof: the model cannot be exported to ONNX: ") and "data-dependent" in said


def test_openvino_tells_nobody_of_its_import(tmp_path: Path) -> None:
    require_runtime("openvino")
    code = (
        "import sys; from hwprof.workload.runtimes import open_vino; open_vino._openvino();"
        "print([one for one in sys.modules if one.startswith('openvino_telemetry')])"
    )
    environment = os.environ | {"HOME": str(tmp_path)}
    printed = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert printed.stdout.strip() == "[]" and not list(tmp_path.iterdir())


def test_a_runtime_can_be_tried(tmp_path: Path) -> None:
    require_runtime("onnxruntime")
    model = ("--model", "tests.support.models.runtimes:several")
    options = ("--passes", "measure", "--no-instrumented", "--iterations", "3", "--no-peaks")
    done = hwprof("collect", *model, *options, cwd=tmp_path, environment=TESTS_MODELS)
    assert done.returncode == 0, done.stderr
    done = hwprof("try", "--remedies", "onnxruntime", "--time", "20", cwd=tmp_path, environment=TESTS_MODELS)
    assert done.returncode == 0, done.stderr
    trials = RunDirectory.latest(tmp_path / "results").manifest.trials
    assert trials is not None and [one.remedies for one in trials.rows] == [["onnxruntime"]]
    assert trials.rows[0].calls >= 3
