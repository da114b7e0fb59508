"""The main job through the command line: a small model, its run directory, and every kind of bad input."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import polars as pl
import pytest

from hwprof.analysis.owners import own
from hwprof.run.directory import RunDirectory
from hwprof.run.process_events import WHOLE_PROCESS_TID
from hwprof.trace.kernel_slices import IDLE
from hwprof.trace.tracks import FINDING
from tests.support import synthetic_run, synthetic_samples
from tests.support.bounds import TICK_S
from tests.support.command import hwprof, messages
from tests.support.perfetto import load
from tests.support.requirements import require_module, require_tool
from tests.support.traced import argument

SMALL = ("--model", "yolov8n", "--imgsz", "64", "--iterations", "4", "--warmup", "1", "--no-instrumented")
EDGE_NS = 1e9 * TICK_S + 500_000
"""By how much the kernel's account of the process and what perf counts may differ at an edge: a thread that runs
elsewhere is charged up to a tick later, and threads are read one after the other."""
FACTORY = """
import torch
def small():
    return torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.LazyLinear(5))
def fixed():
    return torch.nn.Sequential(torch.nn.Linear(7, 2))
"""


@pytest.fixture(scope="module", autouse=True)
def _needs_models() -> None:
    require_module("torch")
    require_module("ultralytics")


@pytest.fixture(scope="module")
def collected(tmp_path_factory: pytest.TempPathFactory) -> tuple[RunDirectory, str]:
    """One run of a small YOLO and what was printed."""
    place = tmp_path_factory.mktemp("collect")
    everything = [argument for argument in SMALL if argument != "--no-instrumented"]
    done = hwprof("collect", *everything, "--threads", "2", cwd=place)
    assert done.returncode == 0, done.stderr
    return RunDirectory.latest(place / "results"), done.stdout


def _stand_in(run: RunDirectory) -> tuple[str, ...]:
    """The pass that is added where there are no hardware counters."""
    return () if run.manifest.machine.has_core_pmu else ("instrumented",)


def test_the_run_holds_everything(collected: tuple[RunDirectory, str]) -> None:
    run, printed = collected
    passes = {record.name: record.status for record in run.manifest.passes}
    assert passes == dict.fromkeys(("measure", "trace", *_stand_in(run)), "completed")
    for file in ("trace.pftrace", "layers.csv", "layer_types.csv", "stages.csv", "series.csv", "document.json"):
        assert (run.path / file).stat().st_size > 0, file
    assert {path.name for path in (run.path / "images").iterdir()} == {"bus.jpg", "zidane.jpg"}
    assert "random" in printed
    assert not list(run.path.rglob("*.part")), "a temporary file was left"


def test_stages_and_layers_are_the_main_thread_s(collected: tuple[RunDirectory, str]) -> None:
    """Each pass's process is a copy of another one, with another number."""
    run, _ = collected
    spans = run.scan("spans").filter(pl.col("kind") != "op").select("pass", "pid", "tid").unique().collect()
    numbers = {(record.name, record.pid, record.main_tid) for record in run.completed_passes()}
    assert set(spans.rows()) == numbers
    assert len({pid for _, pid, _ in numbers}) == len(numbers)


def test_compiling_the_edge_reader_is_not_taken_for_work_of_the_model(tmp_path: Path) -> None:
    """At first use a compiler runs as a child of the worker; a short run would notice its processor time."""
    require_tool("cc")
    arguments = (*SMALL, "--iterations", "2", "--passes", "measure", "--format", "json")
    done = hwprof("collect", *arguments, cwd=tmp_path, environment={"XDG_CACHE_HOME": str(tmp_path / "cache")})
    assert done.returncode == 0, done.stderr
    assert list((tmp_path / "cache/hwprof").glob("group_reads-*.so"))
    assert not [note for note in json.loads(done.stdout)["notes"] if "child processes" in note]


def test_every_layer_and_every_modules_own_code_has_a_row_with_its_time(collected: tuple[RunDirectory, str]) -> None:
    run, _ = collected
    modules = run.read("layers")
    leaves, blocks = modules.filter("leaf"), modules.filter(~pl.col("leaf") & (pl.col("calls") > 0))
    rows = pl.read_csv(run.path / "layers.csv")
    owners = [*leaves["path"], *(own(path) for path in blocks["path"]), "unattributed", "whole"]
    assert sorted(rows["path"].to_list()) == sorted(owners)
    assert rows.filter(pl.col("path") != "whole")["share_ratio"].sum() == pytest.approx(1)
    (little,) = rows.filter(path="unattributed")["share_ratio"]
    assert little < 0.05, "what lies outside of every module"
    spans = run.read("spans").filter((pl.col("pass") == "measure") & (pl.col("kind") == "layer"))
    assert set(leaves.filter(pl.col("calls") > 0)["path"]) <= set(spans["path"])


@pytest.mark.alone
def test_layers_and_unattributed_add_up_to_the_process(tmp_path: Path) -> None:
    """What perf counted over all threads between the edges of the iterations is what the kernel charged the process
    with. The kernel's account of a thread that runs elsewhere lags by up to a tick, so the iterations must be long; and
    it leaves out what the hypervisor took, during which perf's task-clock runs on."""
    arguments = ("--model", "yolov8n", "--iterations", "20", "--passes", "measure", "--threads", "2")
    done = hwprof("collect", *arguments, "--no-instrumented", "--format", "json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    run = RunDirectory.latest(tmp_path / "results")
    spans, counts = run.read("spans"), run.read("counts")
    iterations = spans.filter((pl.col("kind") == "iteration") & ~pl.col("warmup")).select("span")
    whole = counts.join(iterations, on="span").group_by("event").agg(pl.col("value").sum())
    by_event = dict(whole.iter_rows())
    stolen_ns = run.manifest.passes[0].stolen_ns or 0
    # at both edges of every iteration
    tolerance_ns = iterations.height * 2 * EDGE_NS
    assert tolerance_ns < 0.2 * by_event["process-cpu-time"], "then nothing would be shown"
    assert by_event["task-clock"] >= by_event["process-cpu-time"] - tolerance_ns
    assert by_event["task-clock"] <= by_event["process-cpu-time"] + tolerance_ns + stolen_ns
    parts = json.loads(done.stdout)["cpu_time"]
    assert parts["layers"] + parts["rest_of_inference"] + parts["rest_of_iteration"] == pytest.approx(
        parts["accounted_for"]
    )
    process_ns = parts["iterations"] * parts["process_cpu_time_ns"]
    off_share = parts["iterations"] * 2 * EDGE_NS / process_ns
    assert 1 - off_share <= parts["accounted_for"] <= 1 + off_share + stolen_ns / process_ns
    assert parts["layers"] > 0.5


def test_leaf_spans_do_not_overlap(collected: tuple[RunDirectory, str]) -> None:
    run, _ = collected
    leaves = run.read("layers").filter(pl.col("leaf"))["path"].implode()
    for name in ("measure", "trace"):
        spans = run.read("spans").filter(
            (pl.col("pass") == name) & (pl.col("kind") == "layer") & pl.col("path").is_in(leaves)
        )
        ordered = spans.sort("begin_ns")
        assert (ordered["begin_ns"][1:] >= ordered["end_ns"][:-1]).all()


def test_operators_lie_inside_of_the_trace_pass(collected: tuple[RunDirectory, str]) -> None:
    run, _ = collected
    spans = run.read("spans").filter(pl.col("pass") == "trace")
    operators = spans.filter(pl.col("kind") == "op")
    assert operators.filter(pl.col("path") == "aten::conv2d").height > 100
    assert operators.filter(pl.col("iteration") < 0).height < operators.height * 0.05
    convolution = operators.filter(pl.col("path") == "aten::conv2d").row(0, named=True)
    assert convolution["input_shapes"].startswith("1x3x")


def test_the_trace_has_every_span_and_every_count_of_the_tables(collected: tuple[RunDirectory, str]) -> None:
    """Of a real run, in the real trace processor: numbers, durations and sums, and nothing that it complains about."""
    run, _ = collected
    trace = load(run.path / "trace.pftrace")
    assert trace.complaints() == []
    spans, counts = run.read("spans"), run.read("counts")
    kinds = spans.group_by("kind").agg(pl.len(), (pl.col("end_ns") - pl.col("begin_ns")).sum().alias("dur"))
    shown = trace.query("select category, count(*) as n, sum(dur) as dur from slice group by category")
    by_category = {row["category"]: (row["n"], row["dur"]) for row in shown}
    expected = {kind: (number, duration) for kind, number, duration in kinds.iter_rows()}
    assert {name: found for name, found in by_category.items() if name in expected} == expected
    sampled = {*run.read("kernels")["domain"], *IDLE}  # slices of samples, which test_trace_samples counts
    assert set(by_category) - set(expected) <= {*sampled, FINDING}  # findings: test_trace_findings
    by_event = counts.group_by("event").agg(pl.struct("pass", "span").n_unique(), pl.col("value").sum())
    in_trace = trace.query(
        "select key, count(*) as n, sum(int_value) as total from slice join args using (arg_set_id)"
        " where key glob 'debug.counts.*' group by key"
    )
    assert {row["key"].removeprefix("debug.counts."): (row["n"], row["total"]) for row in in_trace} == {
        argument(event): (number, total) for event, number, total in by_event.rows()
    }


def test_the_report_can_be_had_again_and_as_json(collected: tuple[RunDirectory, str]) -> None:
    run, printed = collected
    again = hwprof("report", str(run.path), cwd=run.path)
    assert again.returncode == 0, again.stderr
    assert again.stdout.strip() in printed
    assert "Hottest layers" in hwprof("report", str(run.path), "--all", cwd=run.path).stdout
    document = json.loads(hwprof("report", str(run.path), "--format", "json", cwd=run.path).stdout)
    assert document["schema_version"] >= 1


def test_a_model_of_one_s_own(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(FACTORY)
    done = hwprof(
        "collect",
        "--model",
        "mine:small",
        "--input-shape",
        "1,3,16,16",
        "--iterations",
        "4",
        "--no-instrumented",
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    run = RunDirectory.latest(tmp_path / "results")
    assert run.read("layers").filter(pl.col("leaf"))["path"].to_list() == ["0", "1", "2", "3"]


@pytest.mark.parametrize(
    ("arguments", "status", "says"),
    [
        (["--model", "yolov77"], 2, "yolov7"),
        (["--model", "nowhere.at:all"], 2, "nowhere"),
        (["--model", "mine:fixed", "--input-shape", "1,3,16,16"], 2, "1x3x16x16"),
        (["--model", "mine:fixed", "--input-shape", "wide"], 2, "1,3,224,224"),
        ([*SMALL, "--source", "missing.jpg"], 2, "missing.jpg"),
        ([*SMALL, "--source", "broken.jpg"], 2, "broken.jpg"),
        ([*SMALL, "--source", "empty"], 2, "empty"),
        ([*SMALL, "--weights", "missing.pt"], 2, "missing.pt"),
        ([*SMALL, "--passes", "mesure"], 2, "measure"),
        ([*SMALL, "--collectors", "pref"], 2, "perf"),
        ([*SMALL, "--output", "broken.jpg"], 2, "--output"),
        (["--iterations", "0"], 2, "--iterations"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(arguments: list[str], status: int, says: str, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(FACTORY)
    (tmp_path / "broken.jpg").write_bytes(b"\xff\xd8\xff not a picture")
    (tmp_path / "empty").mkdir()
    done = hwprof("collect", *arguments, cwd=tmp_path)
    assert done.returncode == status, (done.stdout, done.stderr)
    assert len(messages(done.stderr)) == 1, done.stderr
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    results = tmp_path / "results"
    assert not results.exists() or list(results.iterdir()) == []


def test_the_measured_process_has_no_table_library_in_it() -> None:
    """Its threads would stand among the workload's; so nothing that runs before measuring is over may import it."""
    code = (
        "import sys, hwprof.session.worker, collectors.perf.collector, collectors.torch_profiler.collector\n"
        "from hwprof.workload import factory, layer_hooks\n"
        "from hwprof.workload.spec import WorkloadSpec\n"
        "factory.build(WorkloadSpec(model='yolov8n', imgsz=64)).prepare()\n"
        "assert collectors.perf.collector.PerfCollector().availability() is not None\n"
        "print(sorted({'polars', 'torchvision', 'matplotlib', 'torch._dynamo'} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip().splitlines()[-1] == "[]"


SPELLED = {"spans": "kind", "counts": "provenance", "threads": "role", "samples": "domain"}
"""Columns with a closed set of words, by table."""
SHAPE = r"((\d+x)*\d+|scalar)"
SHAPES = rf"^({SHAPE}|\({SHAPE}(,{SHAPE})*\))( {SHAPE}| \({SHAPE}(,{SHAPE})*\))*$"
"""One after the other; those of a list of tensors as ``(1x64x8x8,1x32x8x8)``."""


def with_nulls(frame: pl.DataFrame) -> set[str]:
    return {column for column in frame.columns if frame[column].null_count()}


def test_synthetic_runs_hold_nothing_that_production_does_not_write(
    collected: tuple[RunDirectory, str], tmp_path: Path
) -> None:
    """The same words in the same columns, the same spelling of shapes, and no null where a real run has none."""
    real, synthetic = collected[0], synthetic_run.build(tmp_path)
    synthetic_samples.add(synthetic)
    for table in ("spans", "counts", "threads", "layers", "layer_calls", "samples", "switches", "stacks"):
        written, made = real.read(table), synthetic.read(table)
        assert made.schema == written.schema, table
        if written.is_empty():  # a machine that cannot sample
            continue
        if table in SPELLED:
            assert set(made[SPELLED[table]]) <= set(written[SPELLED[table]]), table
        for kind in made["kind"].unique() if table == "spans" else ():
            assert with_nulls(made.filter(kind=kind)) <= with_nulls(written.filter(kind=kind)), kind
        if table != "spans":
            assert with_nulls(made) <= with_nulls(written), table
        for column in {"input_shapes", "output_shapes"} & set(made.columns):
            for frame in (made, written):
                assert frame[column].drop_nulls().str.contains(SHAPES).all(), (table, column)
    made, written = (run.read("spans") for run in (synthetic, real))
    assert set(made.filter(kind="region")["path"]) <= set(written.filter(kind="region")["path"])
    assert not made.filter(kind="op")["warmup"].any() and not written.filter(kind="op")["warmup"].any()
    of_process = pl.col("tid") == WHOLE_PROCESS_TID
    made, written = (run.read("counts").filter(of_process) for run in (synthetic, real))
    assert set(made["event"]) <= set(written["event"])


LONG = """
import time
import torch
class Long(torch.nn.Module):
    def forward(self, x):
        time.sleep(4.2)
        return x
def model():
    return torch.nn.Sequential(Long()), torch.zeros(1)
"""


def test_iterations_that_take_long_are_fewer_unless_somebody_says_how_many(tmp_path: Path) -> None:
    (tmp_path / "long_model.py").write_text(LONG, encoding="utf-8")
    alone = ("--passes", "trace", "--warmup", "1", "--collectors", "sampler,perf", "--no-instrumented")
    done = hwprof("collect", "--model", "long_model:model", *alone, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (trace,) = RunDirectory.latest(tmp_path / "results").manifest.passes
    assert sum(not one.warmup for one in trace.iterations) == 2, "as many as 10 s have room for, of five"


def test_a_few_kilobytes_that_are_gigabytes_of_pixels_are_refused(tmp_path: Path) -> None:
    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    head = struct.pack(">IIBBBBB", 20_000, 20_000, 8, 2, 0, 0, 0)
    chunks = (b"IHDR", head), (b"IDAT", zlib.compress(bytes(1 << 16))), (b"IEND", b"")
    (tmp_path / "huge.png").write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*one) for one in chunks))
    done = hwprof("layers", "--model", "yolov8n", "--source", "huge.png", cwd=tmp_path)
    (line,) = messages(done.stderr)
    assert done.returncode == 2 and "huge.png has more than 268435456 pixels" in line


LOUD = """
import os
import torch
def model():
    print("loading \x1b[31m")
    os.write(1, b"from the library\\n")
    return torch.nn.Sequential(torch.nn.Linear(4, 4)), torch.zeros(1, 4)
class Odd(BaseException):
    pass
def odd():
    raise Odd("mine")
"""


def test_what_a_factory_prints_is_not_in_the_table_of_layers(tmp_path: Path) -> None:
    (tmp_path / "loud.py").write_text(LOUD, encoding="utf-8")
    done = hwprof("layers", "--model", "loud:model", "--format", "json", cwd=tmp_path)
    assert done.returncode == 0 and json.loads(done.stdout)
    assert "loading" in done.stderr and "from the library" in done.stderr
    done = hwprof("layers", "--model", "loud:odd", cwd=tmp_path)
    assert done.returncode == 1 and "Odd: mine" in done.stderr


def test_a_current_folder_that_is_not_utf8_is_refused_before_anything_is_measured(tmp_path: Path) -> None:
    odd = tmp_path / os.fsdecode(b"caf\xe9")
    odd.mkdir()
    done = hwprof("collect", *SMALL, cwd=odd)
    (line,) = messages(done.stderr)
    assert done.returncode == 1 and "caf\\xe9, is not UTF-8" in line and not list(odd.iterdir())
