"""oneDNN's primitives of real models: each in its layer, fallbacks named, nobody else disturbed."""

from __future__ import annotations

import ctypes
import math
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from collectors.onednn_verbose.collector import RAW_FILE, OnednnVerboseCollector
from collectors.onednn_verbose.lines import parse
from hwprof.analysis.implementations import vector_bits
from hwprof.analysis.primitives import Primitives, analyse
from hwprof.analysis.reported_primitives import reported_primitives
from hwprof.analysis.run_analysis import RunAnalysis
from hwprof.collector.contract import PassContext
from hwprof.errors import HwprofError
from hwprof.report.document import builder
from hwprof.report.document.kernels import Kernels
from hwprof.report.document.primitives import Primitives as PrimitivesPart
from hwprof.run.directory import RunDirectory
from hwprof.run.schema import TABLES
from tests.support.command import TESTS_MODELS, collect, hwprof_here
from tests.support.document_parts import part
from tests.support.requirements import missing, require_module, require_sampler

pytestmark = pytest.mark.alone

SHORT = ("--collectors", "onednn_verbose", "--iterations", "2", "--warmup", "1", "--threads", "2")
MIXED = ("--model", "tests.support.models.onednn:mixed")


@pytest.fixture(scope="module", autouse=True)
def _needs() -> None:
    torch = require_module("torch")
    if not torch.backends.mkldnn.is_available():
        missing("a PyTorch with oneDNN")


def analysed(run: RunDirectory) -> Primitives:
    reported = reported_primitives(RunAnalysis(run))
    assert reported is not None
    return reported.found


@pytest.fixture(scope="module")
def yolo(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    require_module("ultralytics")
    return collect(tmp_path_factory.mktemp("yolo"), *SHORT, "--model", "yolov8n", "--imgsz", "320")


def shape(text: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", text)]


def test_every_primitive_has_its_layer_and_is_its_layers(yolo: RunDirectory) -> None:
    """The sizes in oneDNN's description are those of the call that time says it belongs to; and every convolution is
    there that PyTorch gives to oneDNN."""
    found = analysed(yolo)
    assert found.not_joined() == {}
    of_types = yolo.read("layers").select("path", "type")
    calls = yolo.read("layer_calls").join(of_types, on="path").filter(pl.col("type") == "Conv2d")
    executed = found.calls.filter((pl.col("primitive") == "convolution") & (pl.col("iteration") == 3))
    problems = executed.select("path", "call", "problem")
    assert problems.select("path", "call").is_duplicated().sum() == 0
    both = calls.join(problems, on=["path", "call"], how="left")
    assert both["problem"].drop_nulls().len() == problems.height > 60
    for row in both.iter_rows(named=True):
        inputs, outputs = shape(row["input_shapes"]), shape(row["output_shapes"])
        assert (row["problem"] is not None) == (math.prod(inputs) > 20_480), row  # kernels here are 1 or 3 wide
        if row["problem"] is not None:
            number = {name: int(size) for name, size in re.findall(r"(mb|ic|oc|ih|oh|iw|ow)(\d+)", row["problem"])}
            assert [number[name] for name in ("mb", "ic", "ih", "iw")] == inputs, row
            assert [number[name] for name in ("mb", "oc", "oh", "ow")] == outputs, row


def test_shares_are_of_the_layers_time(yolo: RunDirectory) -> None:
    found = analysed(yolo)
    shares = found.by_layer.group_by("path").agg(pl.col("share").sum())["share"]
    assert shares.len() > 30 and shares.is_between(0, 1).all()
    reorders = found.by_layer.filter(pl.col("primitive") == "reorder")
    assert set(reorders["tensor"]) == {"input", "weights", "output"}, "nothing else in YOLO's convolutions"
    bypassed = found.without.filter(pl.col("type") == "Conv2d")
    assert bypassed.height > 10 and bypassed["reason"].null_count() == 0
    assert found.without.filter(pl.col("type") == "SiLU")["reason"].null_count() > 30


def test_the_share_of_reorders_is_that_of_their_samples(tmp_path: Path) -> None:
    """Of all samples of the inference, those in code that is called a reorder; oneDNN's clock stands beside it."""
    require_sampler()
    require_module("ultralytics")
    arguments = ("--model", "yolov8n", "--imgsz", "320", "--passes", "trace", "--frequency", "3999", "--threads", "2")
    run = collect(tmp_path, *SHORT[2:6], *arguments, "--collectors", "onednn_verbose,sampler")
    document = builder.build(run)
    kernels, found = part(document, Kernels), part(document, PrimitivesPart)
    of_whole = [one for one in kernels.kernels if one.layer is None]
    listed = sum(one.samples for one in of_whole if re.search("blk_kernel|reorder.*(32|execute)", one.kernel))
    whole, *of_layers = found.sampled_reorders
    assert found.reorders and listed, "then nothing would be shown"
    assert (whole.path, found.sampled_from) == (None, kernels.pass_name)
    unlisted = 0.01 * kernels.samples  # each kernel below a thousandth of the whole is not in the list
    assert listed <= whole.samples <= listed + unlisted
    assert whole.share == pytest.approx(whole.samples / kernels.samples, rel=0.2), "a sample stands for about as much"
    assert sum(one.samples for one in of_layers) <= whole.samples
    assert all(0 <= one.share_low <= one.share <= one.share_high <= 1 for one in found.sampled_reorders)


def test_its_iteration_is_nobody_elses(yolo: RunDirectory) -> None:
    (trace,) = [record for record in yolo.manifest.passes if record.name == "trace"]
    assert [iteration.warmup for iteration in trace.iterations] == [True, False, False, True, True, True]
    assert [iteration.alone_for for iteration in trace.iterations] == [*[None] * 3, *["onednn_verbose"] * 3]
    assert analysed(yolo).calls["iteration"].unique().sort().to_list() == [3, 4, 5]
    folder = yolo.path / "raw" / "trace"
    assert "onednn_verbose," not in (folder / "worker.log").read_text()
    text = (folder / "onednn_verbose" / RAW_FILE).read_text()
    assert len(parse(text.splitlines()).primitives) == yolo.read("primitives").height
    (record,) = trace.collectors
    assert (record.name, record.state, record.detail["not_understood"]) == ("onednn_verbose", "ran", 0)
    (measure,) = [record for record in yolo.manifest.passes if record.name == "measure"]
    assert measure.environment == {}


def test_a_run_in_which_onednn_did_not_report(tmp_path: Path) -> None:
    run = collect(tmp_path, *SHORT, *MIXED, "--passes", "measure", environment=TESTS_MODELS)
    assert reported_primitives(RunAnalysis(run)) is None


def test_fallbacks_are_named_and_a_layer_without_primitives_too(tmp_path: Path) -> None:
    run = collect(tmp_path, *SHORT, *MIXED, environment={**TESTS_MODELS, "ONEDNN_MAX_CPU_ISA": "SSE41"})
    found = analysed(run)
    assert found.not_joined() == {}
    kinds = {(row["path"], row["primitive"]): row["fallback"] for row in found.warnings.iter_rows(named=True)}
    assert kinds["recurrent", "rnn"] == "reference"
    assert kinds["grouped", "convolution"] == "generic"
    assert found.without.select("path", "type").rows() == [("product", "Linear")]  # MKL's sgemm, or another BLAS
    (trace,) = [record for record in run.manifest.passes if record.name == "trace"]
    if (vector_bits(trace.collectors[0].detail["machine_flags"]) or 0) > 128:
        assert kinds["direct", "convolution"] == "narrow"
    told = builder.build(run).part(PrimitivesPart)
    assert told is not None
    assert {fallback.layers[0] for fallback in told.fallbacks} == {path for path, _ in kinds}
    assert {fallback.remedy for fallback in told.fallbacks} == {"ONEDNN_MAX_CPU_ISA=SSE41 is set: unset it"}
    printed = hwprof_here("report", str(run.path), "--all").stdout
    assert "warning: rnn by ref" in printed


def test_time_tells_what_the_order_of_the_output_tells(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """The layers write their own lines between oneDNN's: what stands between a layer's two is that layer's."""
    collector = OnednnVerboseCollector()
    wanted = dict(collector.worker_environment())
    if not wanted.items() <= os.environ.items():  # they must hold before torch is loaded: once more, in another process
        again = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"{__file__}::{request.node.name}"]
        done = subprocess.run(again, env=os.environ | wanted, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stdout
        return
    import torch

    from hwprof.session.recorder import SpanRecorder
    from hwprof.workload.layer_hooks import LayerHooks
    from tests.support.models.onednn import mixed

    model, example = mixed()
    flush = ctypes.CDLL(None).fflush

    def says(text: str) -> Any:
        def write(*_: object) -> None:
            flush(None)
            os.write(1, f"{text}\n".encode())

        return write

    for path, module in model.named_children():
        module.register_forward_pre_hook(says(f"begin {path}"))
        module.register_forward_hook(says("end"))
    recorder = SpanRecorder()
    LayerHooks({"": model}, recorder).time_only()
    with torch.no_grad():
        model(example)
        collector.start(PassContext("trace", os.getpid(), os.getpid(), tmp_path, {}))
        with collector.own_iteration(), recorder.iteration(0, warmup=True, event_set=None):
            for _ in range(5):
                model(example)
    inside: str | None = None
    expected = []
    for line in (tmp_path / RAW_FILE).read_text().splitlines():
        if line.startswith(("begin ", "end")):
            inside = line.partition(" ")[2] or None
        elif ",primitive,exec," in line:
            expected.append(inside)
    collected = collector.stop()
    rows = collected.tables["primitives"].with_columns(pl.lit("trace").alias("pass"))
    paths = [path for path, _ in model.named_children()]
    layers = pl.DataFrame([{"path": path, "leaf": True} for path in paths], schema=TABLES["layers"])
    found = analyse(rows, recorder.table(os.getpid()), layers, collected.clocks[0].error_ns, [])
    assert found.calls["path"].to_list() == expected
    assert set(expected) == {"direct", "grouped", "recurrent"}


def test_a_build_without_onednn_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: False)
    collector = OnednnVerboseCollector()
    with pytest.raises(HwprofError, match="has no oneDNN") as raised:
        collector.start(PassContext("trace", os.getpid(), os.getpid(), tmp_path, {}))
    assert raised.value.remedy
