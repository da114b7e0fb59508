"""A noisy run says so before everything else; what was left out is counted."""

from __future__ import annotations

import json
import re
from pathlib import Path

import msgspec
import polars as pl
import pytest

from hwprof.report.document import builder
from hwprof.report.document.document import Document
from hwprof.report.document.hottest import rank
from hwprof.report.document.layers import Layer, Layers
from hwprof.report.document.noise import Noise
from hwprof.report.document.overhead import Effect, Overhead
from hwprof.report.document.stages import Stages
from hwprof.report.json.codec import encode
from hwprof.report.text.figures import UNICODE
from hwprof.report.text.header import slowdown
from tests.support import synthetic_variants as runs
from tests.support.document_parts import part, replaced
from tests.support.sampled_report import printed
from tests.support.synthetic_run import build

ALL = tuple(range(1, 13))


def test_figures_are_those_of_a_quiet_run(tmp_path: Path) -> None:
    """Two of six timed iterations are four times as long."""
    quiet = builder.build(build(tmp_path / "quiet", iterations=12))
    busy = builder.build(runs.disturbed(tmp_path / "busy"))
    found = part(busy, Noise)
    assert (found.disturbed, found.timed, found.timed_left_out, found.spread) == (2, 4, 2, False)
    assert (part(quiet, Noise).disturbed, part(quiet, Noise).others) == (0, False)
    for name in ("model.0.conv", "model.2"):
        here, there = (layer(document, name).time for document in (busy, quiet))
        assert here is not None and there is not None
        assert abs(here.median_ns / there.median_ns - 1) < 0.05
        assert (here.repetitions, there.repetitions) == (4, 6)
    assert {row.call.repetitions for row in part(busy, Stages).rows if row.call} == {4}


def test_the_numbers_of_disturbed_iterations_are_in_the_json(tmp_path: Path) -> None:
    """Of the pass that figures are from, and of each pass: they are marked in its trace."""
    some, every = (builder.build(runs.disturbed(tmp_path / str(all_), every=all_)) for all_ in (False, True))
    noise, passes = (json.loads(encode(some))[key] for key in ("noise", "passes"))
    assert (noise["disturbed_iterations"], noise["left_out_iterations"]) == ([2, 8], [2, 8])
    assert [entry["disturbed_iterations"] for entry in passes] == [[2, 8], []]
    found = part(every, Noise)
    assert (found.disturbed_iterations, found.left_out_iterations) == (tuple(range(1, 13)), ())


def layer(document: Document, path: str) -> Layer:
    return next(row for row in part(document, Layers).rows if row.path == path)


def test_a_quiet_run_begins_with_the_run(tmp_path: Path) -> None:
    assert printed(builder.build(build(tmp_path)), 120).startswith("run ")


def test_a_noisy_run_says_so_first_and_what_to_do(tmp_path: Path) -> None:
    text = printed(builder.build(runs.disturbed(tmp_path)), 120)
    warning = text[: text.index("\nrun ")]
    assert "2 disturbed" in warning and "4 timed and 6 counted" in warning
    assert "--wait-quiet" in warning
    assert "4 of 6 timed iterations (2 disturbed)" in text


def test_a_drift_beside_others_is_no_lack_of_warm_up(tmp_path: Path) -> None:
    """Iterations become shorter: of an undisturbed run that has a remedy, but not where others did it."""
    for name, which in (("quiet", ()), ("busy", ALL)):
        run = build(tmp_path / name, iterations=24)
        record = run.manifest.passes[0]
        record.iterations = [msgspec.structs.replace(one, layers_counted=False) for one in record.iterations]
        if which:
            record.iterations = [msgspec.structs.replace(one, disturbance=runs.BUSY) for one in record.iterations]
        run.save_manifest()
        longer = (pl.col("end_ns") + 1_000_000 * (24 - pl.col("iteration"))).alias("end_ns")
        runs.change_table(run, "spans", pl.when(pl.col("path") == "inference").then(longer).otherwise("end_ns"))
        built = builder.build(run)
        drift = part(built, Noise).drift
        assert drift is not None and drift < 0
        (line,) = [line for line in printed(built, 300).splitlines() if "times drift" in line]
        assert ("--warmup" in line) is (not which)


def test_where_all_are_disturbed_none_is_left_out(tmp_path: Path) -> None:
    built = builder.build(runs.disturbed(tmp_path, every=True))
    found = part(built, Noise)
    assert (found.disturbed, found.timed, found.timed_left_out, found.others) == (12, 6, 0, True)
    assert "12 of 12 iterations disturbed" in printed(built, 120)


DISTURBED = {
    "none": (),
    "timed": (2, 8),
    "counted": (1, 3, 5),
    "both": (1, 2, 4, 9),
    "too many timed": (1, 2, 4, 6, 8),
    "too many counted": (1, 3, 5, 7, 8),
    "too many of both": (1, 2, 3, 4, 5, 6, 7, 8),
    "all": ALL,
}


@pytest.mark.parametrize("which", list(DISTURBED))
def test_what_the_text_says_of_iterations_the_json_says(tmp_path: Path, which: str) -> None:
    built = builder.build(runs.disturbed(tmp_path, which=DISTURBED[which]))
    document = json.loads(encode(built))
    found, whole = document["noise"], document["layers"]["whole"]
    left_out = found["left_out_iterations"]
    assert found["disturbed"] == len(DISTURBED[which])
    assert len(left_out) == found["timed_left_out"] + found["counted_left_out"]
    assert len(left_out) + found["timed"] + found["counted"] == found["iterations"]
    assert found["timed"] == whole["time"]["repetitions"]
    columns = document["layers"]["counters"]["events"].values()
    assert {column["iterations"] for column in columns} == {found["counted"]}
    text = " ".join(printed(built, 400).split())
    for kind in ("timed", "counted"):
        kept, less = found[kind], found[f"{kind}_left_out"]
        wanted = rf"of {kept} of {kept + less} {kind}.*?\({less} disturbed\)" if less else rf"of {kept} {kind}"
        assert re.search(wanted, text), wanted
    warned = re.search(
        r"; (\S+)(?: of (\S+))? disturbed iterations? left out, (\d+) timed and (\d+) counted remain", text
    )
    assert (warned is not None) is bool(left_out)
    if warned is not None:
        number, of, timed, counted = warned.groups()
        assert (int(number), int(of or number)) == (len(left_out), found["disturbed"])
        assert (int(timed), int(counted)) == (found["timed"], found["counted"])
    assert ("all are kept" in text) is (found["disturbed"] > 0 and not left_out)
    kept = set(DISTURBED[which]) - set(left_out)
    assert found["timed_disturbed"] == sum(index % 2 == 0 for index in kept)
    assert text.startswith("Noisy run") is found["others"]


@pytest.mark.parametrize("number", [1, 2, 3])
def test_few_iterations_are_counted_alike_in_text_and_json(tmp_path: Path, number: int) -> None:
    built = builder.build(build(tmp_path, iterations=number))
    found = part(built, Noise)
    kinds = {1: (1, 1, "of 1 counted"), 2: (1, 1, "of 1 timed"), 3: (1, 2, "of 1 timed")}
    timed, counted, words = kinds[number]
    assert (found.timed, found.counted, found.left_out_iterations) == (timed, counted, ())
    (line,) = [line for line in printed(built, 200).splitlines() if line.startswith("  time: ")]
    assert words in line and "median of 1 " not in line
    assert (f"median of {counted} counted" in line) is (counted > 1)


@pytest.mark.parametrize(
    ("passes", "which", "counting", "trace"),
    [
        (["trace"], ALL, True, False),
        (["measure"], ALL, False, False),
        (["measure"], ALL[0::2], False, True),  # all that count
        (["measure"], ALL[1::2], False, False),  # all that only time
        (["measure", "trace"], ALL[:3], True, True),
    ],
)
def test_no_overhead_of_what_others_did(
    tmp_path: Path, passes: list[str], which: tuple[int, ...], counting: bool, trace: bool
) -> None:
    """There is a reason instead, in the JSON and on the terminal; and no layer has a ratio either."""
    known = {"counting": counting, "trace": trace}
    built = builder.build(runs.disturbed(tmp_path, which=which, passes=passes))
    found, whole = part(built, Overhead), part(built, Layers).whole
    assert whole is not None
    assert {"counting": found.counting is not None, "trace": found.trace is not None} == known
    assert {"counting": found.missing_counting is None, "trace": found.missing_trace is None} == known
    assert {"counting": whole.counting_ratio is not None, "trace": whole.trace_ratio is not None} == known
    lines = [
        line for line in printed(built, 300).splitlines() if "reads at layer edges" in line or "pass trace:" in line
    ]
    assert ["not available: all" in line for line in lines] == [not one for one in known.values()]


def test_an_overhead_is_of_undisturbed_iterations_where_times_are_of_all(tmp_path: Path) -> None:
    """Two of the six timed ones are undisturbed: too few for times, and all that is alike in both passes."""
    built = builder.build(runs.disturbed(tmp_path, which=(2, 4, 6, 8)))
    found, noise = part(built, Overhead), part(built, Noise)
    assert (noise.timed, noise.timed_left_out) == (6, 0)
    assert found.counting is not None and found.trace is not None
    assert (found.counting.base_iterations, found.trace.base_iterations) == (2, 2)
    assert abs(found.trace.ratio - 1.3) < 0.02


def test_a_containers_limit_is_not_other_programs(tmp_path: Path) -> None:
    built = builder.build(runs.throttled(tmp_path))
    found = part(built, Noise)
    assert (found.throttled, found.limited, found.others) == (120, True, True)
    text = printed(built, 120)
    warning = text[: text.index("\nrun ")]
    assert "0.15 CPUs" in warning and "120 times" in warning
    assert "other programs" not in warning and "--wait-quiet" not in warning
    missing = [part(built, Overhead).missing_counting, part(built, Overhead).missing_trace]
    assert [one is not None and one.remedy for one in missing] == [None, None], "a quiet machine does not help"


def test_a_container_has_the_stops_though_times_are_of_what_they_left_alone(tmp_path: Path) -> None:
    run = runs.throttled(tmp_path)
    record = run.manifest.passes[0]
    record.iterations = [
        one
        if one.layers_counted or one.index <= 5 or one.disturbance is None
        else msgspec.structs.replace(one, disturbance=msgspec.structs.replace(one.disturbance, waited_ns=0))
        for one in record.iterations
    ]
    run.save_manifest()
    built = builder.build(run)
    found = part(built, Noise)
    assert found.timed_left_out and found.mean_ns == 48_000_000
    (warning,) = [line for line in printed(built, 400).splitlines() if "allows 0.15 CPUs" in line]
    assert "with those left out an iteration takes 48.0 ms on average" in warning


def test_a_process_that_lost_a_processor_is_told_so(tmp_path: Path) -> None:
    run = runs.disturbed(tmp_path)
    record = run.manifest.passes[0]
    record.iterations = [
        msgspec.structs.replace(
            one, disturbance=msgspec.structs.replace(one.disturbance, processors=1 if one.index % 4 == 1 else 2)
        )
        for one in record.iterations
        if one.disturbance is not None
    ]
    run.save_manifest()
    built = builder.build(run)
    found = part(built, Noise)
    (warning,) = [line for line in printed(built, 400).splitlines() if "might use" in line]
    assert f"only 1 processor in {found.narrowed} of {found.iterations} iterations" in warning
    assert "taskset" in warning and "other programs" not in warning


def test_an_overhead_has_its_error_or_is_none(tmp_path: Path) -> None:
    text = printed(builder.build(build(tmp_path, iterations=12)), 120)
    (line,) = [line for line in text.splitlines() if "counter reads at layer edges" in line]
    assert "not distinguishable" in line and " points " in line
    (line,) = [line for line in text.splitlines() if "pass trace: inference" in line]
    assert "×1.30 ±" in line


def test_tables_of_times_have_the_minimum_where_there_is_more_than_one(tmp_path: Path) -> None:
    several, single = (
        printed(builder.build(build(tmp_path / str(number), iterations=number)), 120) for number in (6, 2)
    )
    headers = [line.split() for text in (several, single) for line in text.splitlines() if " time ms " in line]
    assert ["min" in header for header in headers] == [True, True, False, False]


def test_shares_say_what_they_are_of_where_medians_do_not_add_up(tmp_path: Path) -> None:
    """In every timed iteration another layer takes ten times as long: no median has any of it, but the whole's."""
    run = build(tmp_path, iterations=12)
    leaves = ["model.0.conv", "model.0.act", "model.1.cv1.conv", "model.1.cv1.act", "model.2"]
    longer = pl.col("begin_ns") + 30_000_000
    for number, iteration in enumerate(range(2, 12, 2)):
        hit = (pl.col("iteration") == iteration) & (pl.col("pass") == "measure")
        one = hit & (pl.col("path") == leaves[number % 5])
        runs.change_table(run, "spans", pl.when(one).then(longer).otherwise("end_ns").alias("end_ns"))
        stage = hit & (pl.col("path") == "inference")
        runs.change_table(run, "spans", pl.when(stage).then(longer).otherwise("end_ns").alias("end_ns"))
    built = builder.build(run)
    assert sum(row.share or 0 for row in part(built, Layers).rows) <= 1
    (note,) = [line for line in printed(built, 120).splitlines() if line.startswith("  share: of mean times")]
    assert " ms" in note


def test_what_the_hypervisor_took_has_another_remedy_than_other_programs(tmp_path: Path) -> None:
    run = build(tmp_path, iterations=12)
    record = run.manifest.passes[0]
    record.measured_ns, record.stolen_ns = 1_000_000_000, 500_000_000
    run.save_manifest()
    text = printed(builder.build(run), 300)
    (warning,) = [line for line in text.splitlines() if "had the processors" in line]
    assert "virtual machines" in warning and "other programs" not in warning and "--wait-quiet" not in warning


def test_what_others_took_is_left_out_where_nobody_knows(tmp_path: Path) -> None:
    """A model whose clocks stand still: no share of no time."""
    built = builder.build(runs.disturbed(tmp_path, every=True))
    unknown = msgspec.structs.replace(part(built, Noise), preempted_share=None, stolen_share=None)
    (warning,) = [line for line in printed(replaced(built, unknown), 300).splitlines() if "had the processors" in line]
    assert "had the processors; 12 of 12 iterations disturbed" in warning


def test_threads_of_its_own_that_wait_for_one_another(tmp_path: Path) -> None:
    run = runs.disturbed(tmp_path, every=True)
    run.manifest.passes[0].others_ns = 0
    text = " ".join(printed(builder.build(run), 300).split())
    assert "its own threads had the processors from one another (preempted" in text and "Try: --threads 1" in text
    assert "other programs had" not in text


@pytest.mark.parametrize(("allowed", "advised"), [(None, False), (1, True)])
def test_more_threads_than_processors_that_it_may_use(tmp_path: Path, allowed: int | None, advised: bool) -> None:
    """The machine has more; the run was held to some of them."""
    run = runs.disturbed(tmp_path)
    threads = run.manifest.workload.threads if run.manifest.workload is not None else 0
    assert 1 < threads <= run.manifest.machine.logical_processors
    run.manifest.machine = msgspec.structs.replace(run.manifest.machine, allowed_processors=allowed)
    text = " ".join(printed(builder.build(run), 300).split())
    assert (f"its own {threads} threads, or other programs," in text) is advised
    assert ("--threads 1," in text) is advised
    assert ("1 of its CPUs allowed" in text) is advised


@pytest.mark.parametrize(("slower", "warm_up"), [(True, False), (False, True)])
def test_only_iterations_that_become_faster_lack_warm_up(tmp_path: Path, slower: bool, warm_up: bool) -> None:
    run = build(tmp_path, iterations=24)
    record = run.manifest.passes[0]
    record.iterations = [msgspec.structs.replace(one, layers_counted=False) for one in record.iterations]
    run.save_manifest()
    turn = pl.col("iteration") if slower else 24 - pl.col("iteration")
    longer = (pl.col("end_ns") + 1_000_000 * turn).alias("end_ns")
    runs.change_table(run, "spans", pl.when(pl.col("path") == "inference").then(longer).otherwise("end_ns"))
    (line,) = [line for line in printed(builder.build(run), 300).splitlines() if "times drift" in line]
    assert ("--warmup" in line) is warm_up


def test_a_layer_that_few_iterations_call_does_not_rank_by_the_time_of_a_call(tmp_path: Path) -> None:
    document = builder.build(build(tmp_path, iterations=12))
    layers = part(document, Layers)
    first, *rest = layers.rows
    assert first.time is not None and first.share is not None
    longest = max(row.time.median_ns for row in rest if row.time)
    rare = msgspec.structs.replace(
        first, share=0.0001, time=msgspec.structs.replace(first.time, median_ns=2 * longest, repetitions=1)
    )
    order = rank(msgspec.structs.replace(layers, rows=[rare, *rest]), "time", None, [], [])
    assert order.index(rare.path) == sum(row.share is not None and row.share > 0.0001 for row in rest)


@pytest.mark.parametrize(("every", "shown"), [(True, True), (False, False)])
def test_minima_that_the_reader_is_sent_to_are_shown(tmp_path: Path, every: bool, shown: bool) -> None:
    """However narrow the terminal is."""
    text = printed(builder.build(runs.disturbed(tmp_path, every=every)), 60)
    assert ("see the minima" in " ".join(text.split())) is shown
    table = text.partition("Hottest layers")[2].splitlines()[1]
    assert (" min " in table) is shown


def test_an_overhead_of_which_nothing_is_known_has_no_figure() -> None:
    effect = Effect(
        base_ns=1e6, observed_ns=6e5, ratio=0.6, error=2.333, distinguishable=False, base_iterations=2,
        observed_iterations=2, layers_p25=None, layers_median=None, layers_p75=None,
    )  # fmt: skip
    assert slowdown(effect, UNICODE) == "slowdown not known: iterations differ too much (2 vs 2 iterations)"
    few = msgspec.structs.replace(effect, error=0.9)
    assert slowdown(few, UNICODE) == "slowdown not distinguishable from noise, ±90.0 points (2 vs 2 iterations)"
