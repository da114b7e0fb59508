"""oneDNN's primitives in the document, the text and the CSV files."""

from __future__ import annotations

import io
import re
from pathlib import Path

import msgspec
import polars as pl
import pytest
from rich.cells import cell_len
from rich.console import Console

from hwprof.analysis.owners import UNATTRIBUTED
from hwprof.report.document import builder, one_layer
from hwprof.report.document.document import Document
from hwprof.report.document.primitives import Primitives, SampledReorders
from hwprof.report.json import codec
from hwprof.report.text import one_layer as text_of_one_layer
from hwprof.report.text import primitives, report
from hwprof.report.text.page import Page
from hwprof.run.details import PrimitivesDetail, as_json
from hwprof.run.directory import RunDirectory, write_table
from hwprof.run.manifest import ClockRecord, CollectorRecord, IterationRecord
from hwprof.run.schema import TABLES
from tests.support.document_parts import csv_frames, part, replaced
from tests.support.requirements import require_module
from tests.support.rounded import is_same
from tests.support.snapshots import assert_snapshot
from tests.support.synthetic_run import build

FLAGS = ["sse4_1", "avx", "avx2", "avx512f", "avx512bw", "avx512dq", "avx512vl"]
ERROR_NS = 1_000
BLOCKED = "src:aBcd16b wei:ABcd16b16a dst:aBcd16b"

EXECUTED = [
    # layer, primitive, implementation, layouts, begin after the layer's (µs), duration (µs)
    ("model.0.conv", "reorder", "jit:uni", "src:abcd dst:ABcd16b16a", 10, 20),
    ("model.0.conv", "reorder", "jit:blk", "src:abcd dst:aBcd16b", 40, 50),
    ("model.0.conv", "convolution", "jit:avx2", BLOCKED, 100, 200),
    ("model.0.conv", "reorder", "jit:blk", "src:aBcd16b dst:abcd", 310, 40),
    ("model.1.cv1.conv", "convolution", "ref:any", "src:abcd wei:abcd dst:abcd", 10, 800),
    ("model.2", "matmul", "brg_matmul:avx512_core", "src:ab wei:ba dst:ab", -1, 50),  # across its edge
]


def reporting(
    root: Path, executed: list[tuple[str, str, str, str, int, int]], restricted_to: str | None = None
) -> RunDirectory:
    """A run in whose trace pass oneDNN reported the last iteration."""
    run = build(root, iterations=4)
    trace = next(record for record in run.manifest.passes if record.name == "trace")
    last = trace.iterations[-1].index
    trace.iterations[-1] = IterationRecord(last, True, None, False, alone_for="onednn_verbose")
    spans = run.read("spans").filter((pl.col("pass") == "trace") & (pl.col("iteration") == last))
    begins = dict(spans.filter(pl.col("kind") == "layer").select("path", "begin_ns").iter_rows())
    rows = [
        {
            "pass": "trace",
            "order": order,
            "begin_ns": begins[layer] + 1_000 * after,
            "time_ns": 1_000 * duration,
            "primitive": primitive,
            "implementation": implementation,
            "data_types": "src:f32 wei:f32 dst:f32",
            "layouts": layouts,
            "problem": "mb1_ic3oc32_ih640oh160kh3sh4dh0ph1_iw480ow120kw3sw4dw0pw1",
        }
        for order, (layer, primitive, implementation, layouts, after, duration) in enumerate(executed)
    ]
    write_table(run.path / "primitives.parquet", "primitives", pl.DataFrame(rows, schema=TABLES["primitives"]))
    detail = as_json(
        PrimitivesDetail(
            file="verbose.txt",
            primitives=1,
            version="v3.12.0 (commit 80afa71)",
            machine_flags=list(FLAGS),
            restricted_to=restricted_to,
        )
    )
    trace.collectors.append(CollectorRecord(name="onednn_verbose", state="ran", detail=detail))
    trace.clocks.append(ClockRecord("onednn", 0, 0.0, 0, ERROR_NS))
    run.save_manifest()
    return run


def built(run: RunDirectory) -> Primitives:
    found = builder.build(run).part(Primitives)
    assert found is not None
    return found


def section(run: RunDirectory, width: int, encoding: str = "utf-8") -> list[str]:
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding=encoding)
    console = Console(file=file, width=width, highlight=False, markup=False, emoji=False)
    report.render(builder.build(run), console)
    file.flush()
    lines = [line.rstrip() for line in raw.getvalue().decode(encoding).splitlines()]
    start = next((number for number, line in enumerate(lines) if line.startswith("oneDNN v3.12.0 primitives")), None)
    assert start is not None, lines
    return lines[start:]


def shown_of(document: Document) -> str:
    console = Console(file=io.StringIO(), width=100, highlight=False, markup=False, emoji=False)
    primitives.show(Page(document, console))
    assert isinstance(console.file, io.StringIO)
    return "".join(f"{line.rstrip()}\n" for line in console.file.getvalue().splitlines())


def said(run: RunDirectory) -> str:
    return " ".join(" ".join(section(run, 100)).split())


def test_what_layers_executed(tmp_path: Path) -> None:
    found = built(reporting(tmp_path, EXECUTED, "ONEDNN_MAX_CPU_ISA=AVX2"))
    assert (found.executed, found.joined, found.not_joined) == (6, 5, {"outside layers": 1})
    assert (found.version, found.vector_bits, found.clock_error_ns) == ("v3.12.0 (commit 80afa71)", 512, ERROR_NS)
    assert [(row.layer, row.primitive, row.tensor, row.executions, row.time_ns) for row in found.by_layer] == [
        ("model.0.conv", "convolution", None, 1, 200_000),
        ("model.0.conv", "reorder", "input", 1, 50_000),
        ("model.0.conv", "reorder", "output", 1, 40_000),
        ("model.0.conv", "reorder", "weights", 1, 20_000),
        ("model.1.cv1.conv", "convolution", None, 1, 800_000),
    ]
    assert [(row.kind, row.implementation, row.layers, row.time_ns) for row in found.fallbacks] == [
        ("reference", "ref:any", ["model.1.cv1.conv"], 800_000),
        ("narrow", "jit:avx2", ["model.0.conv"], 200_000),
    ]
    for row in found.fallbacks:
        assert row.remedy == "ONEDNN_MAX_CPU_ISA=AVX2 is set: unset it"
        assert row.share == row.time_ns / found.whole_ns
    assert [(row.tensor, row.time_ns) for row in found.reorders] == [
        ("input", 50_000),
        ("output", 40_000),
        ("weights", 20_000),
    ]
    assert "TORCHINDUCTOR_FREEZING=1" in (found.reorders[2].remedy or "")
    bypassed = {row.type: (row.layers, row.reason) for row in found.bypasses}
    assert set(bypassed["SiLU"][0]) == {"model.0.act", "model.1.cv1.act"}
    assert bypassed["SiLU"][1] is None


@pytest.mark.parametrize("width", [60, 80, 120, 200])
@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_the_text_fits_and_warns(width: int, encoding: str, tmp_path: Path) -> None:
    lines = section(reporting(tmp_path, EXECUTED), width, encoding)
    assert max(map(cell_len, lines)) <= width
    warnings = [line for line in lines if line.startswith("  warning: ")]
    assert len(warnings) == 2
    assert warnings[0].startswith("  warning: convolution by ref:any, reference: ")
    (row,) = [line for line in lines if line.split()[0:1] == ["model.0.conv"]]
    assert "jit:avx2" in row
    shares = [word for word in row.split() if word.endswith("%")]
    assert len(shares) == 1, "of a run without samples nobody knows what reorders take of the processor time"


@pytest.mark.parametrize("width", [80, 120])
def test_snapshot(width: int, tmp_path: Path) -> None:
    lines = section(reporting(tmp_path, EXECUTED), width)
    assert_snapshot(f"primitives-{width}", "\n".join(lines) + "\n")


def test_times_are_explained_where_they_are_shown(tmp_path: Path) -> None:
    run = reporting(tmp_path, EXECUTED)
    seen = set()
    for width in (60, 70, 80, 120):
        lines = section(run, width)
        head = next(line for line in lines if line.startswith("layer ")).split("  ")
        shown = "ms" in [word.strip() for word in head]
        seen.add(shown)
        assert ("ms: oneDNN's own" in " ".join(lines)) is shown, width
        assert "of layer: " in " ".join(lines)
    assert seen == {True, False}


def test_findings_in_words(tmp_path: Path) -> None:
    text = said(reporting(tmp_path, EXECUTED))
    assert "Try: ONEDNN_MAX_CPU_ISA" not in text, "nothing was forbidden"
    assert re.search(r"reorders: 0\.110 ms.* 3 times: input 0\.050 ms, output 0\.040 ms, weights 0\.020 ms", text)
    assert re.search(r"1 of 6 primitives .*: 1 outside layers", text)


SAMPLED = [
    SampledReorders(path=None, samples=24, cpu_ns=2.4e6, share=0.024, share_low=0.016, share_high=0.035),
    SampledReorders(path="model.0.conv", samples=20, cpu_ns=2.0e6, share=0.2, share_low=0.13, share_high=0.29),
]


def test_the_share_of_reorders_is_that_of_samples_with_onednns_clock_beside(tmp_path: Path) -> None:
    """That clock has 110 µs, 4.8% of the inference; page faults and waiting are in it."""
    document = builder.build(reporting(tmp_path, EXECUTED))
    sampled = msgspec.structs.replace(part(document, Primitives), sampled_from="trace", sampled_reorders=SAMPLED)
    lines = shown_of(replaced(document, sampled)).splitlines()
    place, _ = (number for number, line in enumerate(lines) if line.startswith("  reorders: "))  # and a footnote
    assert "2.4% ±1.0 of CPU time" in lines[place] and "pass trace" in lines[place]
    assert lines[place + 1].strip().startswith("0.110 ms per iteration by oneDNN's clock, elapsed")
    assert not any("4.8%" in line for line in lines)
    rows = {line.split()[0]: line.split() for line in lines if line.startswith("model.")}
    assert rows["model.0.conv"][-2:] == ["20.0%", "±8.0"]
    assert rows["model.1.cv1.conv"][-1] == "–", "under 10 samples"


@pytest.mark.parametrize(("share_high", "tips"), [(0.019, False), (0.02, True)])
def test_reorders_that_samples_hardly_meet_have_no_remedy(share_high: float, tips: bool, tmp_path: Path) -> None:
    document = builder.build(reporting(tmp_path, EXECUTED))
    known = part(document, Primitives)
    (whole, layer) = SAMPLED
    few = [msgspec.structs.replace(whole, share=0.002, share_low=0.0, share_high=share_high), layer]
    rows = [msgspec.structs.replace(row, remedy="torch.compile") for row in known.reorders]
    sampled = msgspec.structs.replace(known, sampled_from="trace", sampled_reorders=few, reorders=rows)
    assert ("torch.compile" in shown_of(replaced(document, sampled))) is tips


def test_where_nothing_fell_back_that_is_said(tmp_path: Path) -> None:
    text = said(reporting(tmp_path, [("model.0.conv", "convolution", "jit:avx512_core", BLOCKED, 10, 300)]))
    assert "warning" not in text
    assert "reorders:" not in text
    assert "Conv2d without oneDNN" in text, "model.1.cv1.conv"
    assert "model.1.cv1.conv" in text


def test_where_onednn_did_not_report_there_is_no_section_and_no_file(tmp_path: Path) -> None:
    found = builder.build(build(tmp_path, iterations=2))
    assert found.part(Primitives) is None
    assert "primitives.csv" not in csv_frames(found)
    console = Console(file=io.StringIO(), width=120)
    report.render(found, console)
    assert isinstance(console.file, io.StringIO)
    assert "oneDNN" not in console.file.getvalue()


def test_small_layers_without_primitives_have_their_reason_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Findings that matter little have no line of their own, and the table names their types."""
    run = reporting(tmp_path, [("model.0.conv", "convolution", "jit:avx512_core", BLOCKED, 10, 300)])
    reason = "im2col and BLAS"
    assert said(run).count(reason) == 1
    monkeypatch.setattr(primitives, "SMALL", 1.0)
    text = said(run)
    assert "Conv2d without oneDNN" not in text
    assert re.search(rf"without primitives, of these 5 layers: .*1 Conv2d.* Conv2d: {reason}", text)


def test_what_no_layer_owns_has_a_page_without_primitives(tmp_path: Path) -> None:
    found = builder.build(reporting(tmp_path, EXECUTED))
    console = Console(file=io.StringIO(), width=120)
    text_of_one_layer.show(one_layer.one_layer(found, UNATTRIBUTED), Page(found, console))
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    assert UNATTRIBUTED in text and "oneDNN" not in text


def test_every_row_is_in_the_csv_file(tmp_path: Path) -> None:
    found = builder.build(reporting(tmp_path, EXECUTED))
    frame = csv_frames(found)["primitives.csv"]
    assert frame.height == len(part(found, Primitives).by_layer) == 5
    assert frame["fallback"].to_list() == ["narrow", None, None, None, "reference"]
    assert frame["share_of_layer_ratio"].is_between(0, 1).all()


def test_the_iteration_for_it_is_named(tmp_path: Path) -> None:
    """In the preamble, and not among the warm-up iterations."""
    console = Console(file=io.StringIO(), width=200)
    report.render(builder.build(reporting(tmp_path, EXECUTED)), console)
    assert isinstance(console.file, io.StringIO)
    (line,) = [line for line in console.file.getvalue().splitlines() if "trace: completed" in line]
    assert line.rstrip().endswith("iterations: 1 warm-up, 1 timed, 2 counted, 1 onednn_verbose only")


def of_one(run: RunDirectory, path: str) -> str:
    found = builder.build(run)
    one = msgspec.structs.replace(found, hottest=msgspec.structs.replace(found.hottest, layers=[path]))
    console = Console(file=io.StringIO(), width=120)
    primitives.show_hottest(Page(one, console))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_of_a_single_layer_every_reorder_has_a_row_and_only_its_findings_are_told(tmp_path: Path) -> None:
    text = of_one(reporting(tmp_path, EXECUTED), "model.0.conv")
    kinds = ("reorder (input)", "reorder (weights)", "reorder (output)", "warning: convolution")
    assert [text.count(kind) for kind in kinds] == [1, 1, 1, 1]
    assert "without primitives" not in text
    assert "warning: convolution by jit:avx2, narrow" in text


def test_of_a_single_layer_that_bypassed_onednn_the_reason_is_told(tmp_path: Path) -> None:
    run = reporting(tmp_path, EXECUTED[:4])
    text = of_one(run, "model.1.cv1.conv")
    assert [text.count(f"    {word}: ") for word in ("why", "Try")] == [1, 1]
    assert "oneDNN's own" not in text, "there are no times"
    assert of_one(run, "model.0.act") == "", "oneDNN has nothing to do with it"


def test_layers_without_a_primitive_are_counted_by_type(tmp_path: Path) -> None:
    assert "2 SiLU and 1 Detect" in said(reporting(tmp_path, EXECUTED))


def test_layers_without_a_primitive_are_those_shown_that_were_called(tmp_path: Path) -> None:
    """As many are named as what the line is of; one that was never called is not among them."""
    found = builder.build(reporting(tmp_path, EXECUTED))
    shown = ["model.0.act", "model.0.conv", "model.1.cv1.act"]
    some = msgspec.structs.replace(found, hottest=msgspec.structs.replace(found.hottest, layers=shown))
    assert "without primitives, of these 3 layers: 2 SiLU\n" in shown_of(some)
    primitives_part = part(some, Primitives)
    left = [
        msgspec.structs.replace(one, layers=[path for path in one.layers if path != "model.0.act"])
        for one in primitives_part.bypasses
    ]
    without_calls = replaced(some, msgspec.structs.replace(primitives_part, bypasses=left))
    assert "of these 3 layers: 1 SiLU\n" in shown_of(without_calls)


def test_json_round_trips_and_fulfils_its_schema(tmp_path: Path) -> None:
    found = builder.build(reporting(tmp_path, EXECUTED))
    data = codec.encode(found)
    assert is_same(codec.decode(data), found)
    require_module("jsonschema").Draft202012Validator(codec.json_schema()).validate(msgspec.json.decode(data))


def test_times_say_of_what_they_are(tmp_path: Path) -> None:
    text = said(reporting(tmp_path, EXECUTED))
    assert "ms per iteration, 35.1% of the inference in 1 reported iteration of pass trace" in " ".join(text.split())
    assert "reorders: 0.110 ms per iteration by oneDNN's clock, 3 times" in text
