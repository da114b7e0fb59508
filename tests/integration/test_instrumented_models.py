"""Models of every kind are instrumented: none dies, none comes to another result, and the counts say what was
executed."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import NamedTuple

import polars as pl
import pytest

from collectors.instrumented.engine import processor_flags
from collectors.instrumented.notes import TILES, WIDEST
from hwprof.report.document import builder
from hwprof.report.document.instrumented import Instrumented
from hwprof.report.document.layers import Layers
from hwprof.run.manifest import Manifest
from tests.support.command import TESTS_MODELS, collect
from tests.support.document_parts import layer_rows, part
from tests.support.instrumented_process import child
from tests.support.requirements import require_module

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="code is instrumented on x86-64")


@pytest.fixture(autouse=True)
def _without_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Operations of AMX's tiles are not counted, and a note says so: the other kernels of such a processor are."""
    if TILES in processor_flags():
        monkeypatch.setenv(WIDEST, "AVX512_CORE_BF16")


FOLLOW = """
    import tempfile, warnings
    warnings.filterwarnings("ignore")
    from collectors.instrumented.collector import InstrumentedCollector
    from hwprof.collector.contract import CountedSpan, PassContext
    from hwprof.workload.tensors import tensors_in
    from tests.support.models import instrumented as followed_models

    CALLS = 3

    def call():
        with torch.inference_mode():
            return [tensor.clone() for tensor in tensors_in(model(*arguments))]

    def same(one, other):
        return len(one) == len(other) > 0 and all(
            a.dtype == b.dtype and a.shape == b.shape and bool((a.view(torch.uint8) == b.view(torch.uint8)).all())
            for a, b in zip(one, other)
        )

    try:
        model, arguments = followed_models.{model}()
    except followed_models.UnsupportedError as error:
        end(unsupported=str(error))
    arguments = arguments if isinstance(arguments, tuple) else (arguments,)
    call()
    expected = call()
    collector = InstrumentedCollector()
    collector.start(PassContext("instrumented", os.getpid(), os.getpid(), Path(tempfile.mkdtemp()), {{}}))
    edge = collector.full_reader()
    found = []
    for _ in range(CALLS):
        edge()
        found.append(call())
        edge()
    collected = collector.stop()
    counts = collector.counts([CountedSpan(n, n, 2 * n, 2 * n + 1) for n in range(CALLS)])
    last = counts.filter(span=CALLS - 1).select("event", "value").group_by("event").sum()
    end(
        same=[same(one, expected) for one in found],
        counted=dict(zip(last["event"], last["value"])),
        notes=[str(note) for note in collected.notes],
        kept_mappings=collected.detail.kept_mappings,
    )
"""


class Expected(NamedTuple):
    """What a call comes to by arithmetic, and the processor's extension without which it is done in another way."""

    event: str
    operations: int
    needs: str | None = None


CONVOLUTIONS = 2 * (32 * 27 * 38 * 38 + 32 * 288 * 36 * 36 + 512 * 64)
LSTM = 2 * 12 * 4 * 4 * 128 * 2 * ((64 + 128) + (256 + 128))

MODELS: dict[str, Expected | None] = {
    "yolov8n": None,
    "bfloat16": Expected("flops-bf16", CONVOLUTIONS, "avx512_bf16"),
    "autocast": Expected("flops-bf16", CONVOLUTIONS, "avx512_bf16"),
    "float16": None,
    "int8_dynamic": Expected("operations-int8", 2 * 16 * (256 * 512 + 512 * 128), "avx512_vnni"),
    "int8_fbgemm": Expected("operations-int8", CONVOLUTIONS, "avx512_vnni"),
    "int8_onednn": Expected("operations-int8", CONVOLUTIONS, "avx512_vnni"),
    "int8_x86": Expected("operations-int8", CONVOLUTIONS, "avx512_vnni"),
    "traced": Expected("flops-fp32", CONVOLUTIONS),
    "scripted": None,
    "frozen": Expected("flops-fp32", CONVOLUTIONS),
    "interop": None,
    "compiled": Expected("flops-fp32", 2 * 64 * 2048 * 256),
    "compiled_late": None,
    "data_dependent": None,
    "python_threads": None,
    "exceptions": None,
    "deep_recursion": None,
    "unending_recursion": None,
    "embedding_bag": None,
    "lstm": Expected("flops-fp32", LSTM),
    "attention": None,
    "transformer": None,
    "gemm": Expected("flops-fp32", 2 * 128 * 1024 * 1024),
    "fft": None,
    "linear_algebra": None,
}
PADDING = 0.05
"""Vector code computes whole vectors of channels, and biases and activations beside."""


@pytest.mark.parametrize("model", MODELS)
def test_results_are_the_same_and_work_is_counted(model: str) -> None:
    if model == "yolov8n":
        require_module("ultralytics")
    said = child(FOLLOW.format(model=model), timeout_s=300)
    if "unsupported" in said:
        pytest.skip(said["unsupported"])
    assert said["same"] == [True] * 3
    assert said["counted"]["instrumented.instructions"] > 0
    expected = MODELS[model]
    if expected is not None and (expected.needs is None or expected.needs in processor_flags()):
        counted = said["counted"][f"instrumented.{expected.event}"]
        assert counted == pytest.approx(expected.operations, rel=PADDING)


@pytest.mark.parametrize(
    ("model", "thread"), [("interop", "PTThreadPool"), ("python_threads", "threads that have ended")]
)
def test_work_on_threads_that_are_not_followed_is_named(model: str, thread: str) -> None:
    notes = child(FOLLOW.format(model=model))["notes"]
    assert any("uninstrumented" in note and thread in note for note in notes), notes


def test_a_layer_whose_work_others_do_has_no_counts(tmp_path: Path) -> None:
    """0 FLOPs and no instructions would be of the thread that waits."""
    model = ("--model", "tests.support.models.instrumented:works_elsewhere")
    arguments = ("--iterations", "3", "--threads", "2", "--passes", "measure", "--counters", "instrumented")
    require_module("frida")
    found = builder.build(collect(tmp_path, *model, *arguments, environment=TESTS_MODELS))
    by_path = {layer.path: layer for layer in layer_rows(found)}
    flops = part(found, Layers).counters.values("instrumented.flops-fp32")
    assert "1" not in flops
    assert flops["0"] == pytest.approx(2 * 512**3, rel=PADDING) == flops["2"]
    assert "counted_gflops" not in by_path["1"].metrics
    assert by_path["0"].uncounted_ns is by_path["2"].uncounted_ns is None
    assert by_path["1"].uncounted_ns is not None and by_path["1"].uncounted_ns > 1_000_000
    (pass_,) = part(found, Instrumented).passes
    assert "1" not in {kernel.layer for kernel in pass_.kernels}


def count(model: str, folder: Path) -> tuple[Manifest, pl.DataFrame]:
    """A run's record, and what was counted in its leaf layers by following them: path, event, value."""
    require_module("frida")
    arguments = ("--model", f"tests.support.models.instrumented:{model}", "--iterations", "3", "--threads", "2")
    run = collect(folder, *arguments, "--passes", "measure", "--counters", "instrumented", environment=TESTS_MODELS)
    spans = run.read("spans").filter(pl.col("pass") == "instrumented", pl.col("kind") == "layer")
    spans = spans.join(run.read("layers").filter("leaf"), on="path", how="semi")
    counts = run.read("counts").filter(pl.col("pass") == "instrumented")
    counted = counts.join(spans.select("span", "path"), on="span").group_by("path", "event", "iteration")
    last = counted.agg(pl.col("value").sum()).filter(pl.col("iteration") == pl.col("iteration").max())
    return run.manifest, last


@pytest.mark.parametrize(
    ("model", "layers"),
    [
        ("bfloat16", ["0", "1", "2", "3", "4", "5", "6"]),
        ("int8_x86", ["0", "1", "2", "3", "4", "5", "6", "7", "8"]),
        ("traced", ["TopLevelTracedModule"]),  # one layer: what is compiled as a whole
        ("scripted", ["RecursiveScriptModule"]),
        ("compiled", ["OptimizedModule"]),
    ],
)
def test_a_run_of_the_command_counts_it(model: str, layers: list[str], tmp_path: Path) -> None:
    manifest, counted = count(model, tmp_path)
    assert [(record.name, record.status) for record in manifest.passes][-1] == ("instrumented", "completed")
    instructions = counted.filter(pl.col("event") == "instrumented.instructions")
    assert sorted(instructions["path"]) == layers
    assert instructions["value"].min() > 0  # type: ignore[operator]
    expected = MODELS[model]
    if expected is not None and (expected.needs is None or expected.needs in processor_flags()):
        operations = counted.filter(pl.col("event") == f"instrumented.{expected.event}")["value"].sum()
        assert operations == pytest.approx(expected.operations, rel=PADDING)
