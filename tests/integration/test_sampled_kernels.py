"""A sampled run of a real model: every sample has its place, code has names, JIT kernels of convolutions lie in
convolutions."""

from __future__ import annotations

import polars as pl
import pytest

from hwprof.analysis.attribution import attribute
from hwprof.analysis.iterations import select
from hwprof.analysis.owners import UNATTRIBUTED, WHOLE
from hwprof.analysis.parallelism import off_cpu, parallelism, threads_by_layer
from hwprof.analysis.sampled_kernels import kernel_table, kernels_by_layer, layer_table, sampled
from hwprof.analysis.samples import attribute_samples, coverage
from hwprof.run.directory import RunDirectory
from hwprof.run.schema import empty
from tests.support.bounds import RESTART_S, STOLEN_TICK_S, standard_errors, with_missed
from tests.support.command import collect
from tests.support.requirements import missing, require_module, require_sampler

pytestmark = pytest.mark.alone

THREADS = 2
FREQUENCY_HZ = 1999
COMMAND = (
    *("--model", "yolov8n", "--imgsz", "320", "--threads", str(THREADS)),
    *(
        "--collectors",
        "sampler,torch_profiler",
        "--passes",
        "trace",
        "--frequency",
        str(FREQUENCY_HZ),
        "--iterations",
        "20",
    ),
)


class Sampled:
    """The trace pass of the run, attributed."""

    def __init__(self, run: RunDirectory) -> None:
        record = run.find_pass("trace")
        assert record is not None
        self.record = record
        self.spans, self.layers, self.kernels = run.read("spans"), run.read("layers"), run.read("kernels")
        self.stacks, self.switches = run.read("stacks"), run.read("switches")
        self.attributed = attribute_samples(run.read("samples"), self.spans, self.layers)
        self.iterations = select(record.iterations, disturbed_too=True).all
        self.inference = sampled(self.attributed, self.kernels, self.iterations)

    def switched(self, whose: pl.Expr) -> int:
        """How often threads were taken off a processor, or went off it."""
        return self.switches.filter(whose & pl.col("out_ns").is_not_null()).height

    def times_ns(self) -> pl.DataFrame:
        """Wall time of each layer, and between layers, in the iterations after warm-up."""
        times = attribute(self.spans, empty("counts"), self.layers, self.record, disturbed_too=True).times
        kept = times.filter(pl.col("iteration").is_in(list(self.iterations)) & (pl.col("owner") != WHOLE))
        return kept.group_by(layer="owner").agg(pl.col("time_ns").sum())


def total(frame: pl.DataFrame, column: str) -> int:
    return int(frame[column].sum())


def share(rows: pl.Series) -> float:
    """Of those that are true."""
    return int(rows.sum()) / len(rows)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Sampled:
    require_module("torch")
    require_module("ultralytics")
    require_sampler()
    place = tmp_path_factory.mktemp("named")
    return Sampled(collect(place, *COMMAND))


def test_samples_of_the_inference_have_a_layer_or_lie_between_layers(found: Sampled) -> None:
    """What lies between leaves is as much of the calling thread's time on a processor as the spans leave there; nearly
    all of it is within a block of the model."""
    in_stage = found.attributed.filter(pl.col("stage") == "inference")
    assert in_stage.height > 500
    assert in_stage["layer"].null_count() == 0
    shares = dict(coverage(found.attributed).select("where", "share").iter_rows())
    assert shares["layer"] > 0.7, shares
    assert share(found.inference["module"].is_not_null()) >= 0.97
    calling = pl.col("tid") == found.record.main_tid
    off = off_cpu(found.switches, found.spans, found.layers, found.iterations).filter(calling)
    on = found.times_ns().join(off, on="layer", how="left").with_columns(pl.col("off_cpu_ns").fill_null(0))
    on = on.select("layer", on_ns=pl.col("time_ns") - pl.col("off_cpu_ns"))
    between = total(on.filter(pl.col("layer") == UNATTRIBUTED), "on_ns") / total(on, "on_ns")
    samples = found.inference.filter(calling)
    chance = standard_errors() * (between * (1 - between) / samples.height) ** 0.5
    restarts = RESTART_S * 1e9 * found.switched(calling) / total(on, "on_ns")
    assert chance + restarts < 0.1, "then nothing would be shown"
    assert share(samples["layer"] == UNATTRIBUTED) == pytest.approx(between, abs=chance + restarts)


def test_code_has_names(found: Sampled) -> None:
    assert share(found.inference["name"].is_not_null()) >= 0.95
    (record,) = [record for record in found.record.collectors if record.name == "sampler"]
    counted = sum(record.detail[key] for key in ("named", "unnamed", "unknown"))
    assert counted == record.detail["samples"] == found.attributed.height
    assert found.attributed["kernel"].null_count() == found.stacks["kernel"].null_count() == 0


def test_kernels_of_convolutions_lie_in_convolutions(found: Sampled) -> None:
    """Of both threads. oneDNN's names say what a kernel is for."""
    generated = found.inference.filter((pl.col("code") == "jit") & pl.col("name").str.contains("conv"))
    if generated.is_empty():
        missing("a oneDNN that generates convolutions")
    types = found.layers.select(type="type", layer="path")
    placed = generated.with_columns(pl.col("layer").cast(pl.String)).join(types, on="layer", how="left")
    assert placed.height > 50
    assert placed["tid"].n_unique() == THREADS
    assert share(placed["type"] == "Conv2d") >= 0.99, placed.group_by("type", "name").len()


def test_operators_agree_with_layers(found: Sampled) -> None:
    """In a convolution's samples runs a convolution's operator."""
    types = found.layers.filter(pl.col("type") == "Conv2d")["path"]
    rows = found.inference.filter(pl.col("layer").cast(pl.String).is_in(types.implode()))
    known = rows.drop_nulls("operator")
    assert known.height > 0.8 * rows.height
    assert share(known["operator"].cast(pl.String).str.contains("conv|empty|resize")) > 0.95


def test_summaries_add_up(found: Sampled) -> None:
    cpu_ns = total(found.inference, "cpu_ns")
    by_layer = kernels_by_layer(found.inference, found.kernels)
    for table in (layer_table(found.inference), kernel_table(found.inference, found.kernels), by_layer):
        assert total(table, "cpu_ns") == cpu_ns
    threads = threads_by_layer(found.inference)
    together = parallelism(threads, found.times_ns(), THREADS)
    assert total(threads, "busy_ns") + total(threads, "wait_ns") == cpu_ns
    assert 0 < total(threads, "busy_ns") < 1.05 * THREADS * total(together, "time_ns")


def test_the_calling_thread_is_on_a_processor_or_off_it(found: Sampled) -> None:
    """What samples say of the one and switches of the other is the wall time of the inference."""
    calling = pl.col("tid") == found.record.main_tid
    off = off_cpu(found.switches, found.spans, found.layers, found.iterations).filter(calling)
    whole_ns = total(found.times_ns(), "time_ns")
    stages = found.spans.filter((pl.col("kind") == "stage") & (pl.col("path") == "inference")).height
    cut_ns = stages * 2e9 / FREQUENCY_HZ  # the first and the last period of each
    off_ns = cut_ns + 1e9 * RESTART_S * found.switched(calling)
    stolen_ns = (found.record.stolen_ns or 0) + 2e9 * STOLEN_TICK_S * bool(found.record.stolen_ns)
    both_ns = total(off, "off_cpu_ns") + total(found.inference.filter(calling), "cpu_ns")
    inside = with_missed(found.attributed, found.switches).join(found.inference, on=["tid", "time_ns"], how="semi")
    missed_ns = total(inside.filter(calling), "missed_ns")
    assert off_ns < 0.3 * whole_ns and missed_ns < 0.25 * whole_ns, "then little would be shown"
    least_ns = whole_ns - off_ns - missed_ns
    assert least_ns <= both_ns <= whole_ns + off_ns + stolen_ns
