"""The parts of the report that one can ask for: --kernels, and --layer of a layer or a module."""

from __future__ import annotations

import json
import re
from pathlib import Path

import msgspec
import polars as pl
import pytest
from rich.cells import cell_len

from hwprof.analysis.owners import ROOT
from hwprof.cli import app
from hwprof.errors import UsageError
from hwprof.report.document import builder
from hwprof.report.document.hot_kernels import select as hot_kernels_of
from hwprof.report.document.layers import Layer, Layers
from hwprof.report.document.one_layer import one_layer as one_layer_of
from hwprof.report.text.figures import ASCII, UNICODE, Glyphs
from tests.support import synthetic_variants as runs
from tests.support.document_parts import layer_rows, part, replaced
from tests.support.sampled_report import (
    ACT,
    BARRIER,
    CONV,
    JIT,
    OTHER_CONV,
    SILU,
    command,
    kernel,
    layers_of,
    printed,
    samples_of,
    section_of,
)
from tests.support.snapshots import assert_snapshot, section


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("name", ["sampled", "sampled_without_pmu"])
def test_snapshot(name: str, width: int, tmp_path: Path) -> None:
    """The report's section, --kernels, and --layer of a layer and of a module."""
    built = builder.build(getattr(runs, name)(tmp_path), 3)
    report = printed(built, width).splitlines()
    parts = [
        "\n".join(["Hottest layers", *section(report, "Hottest layers")]),
        "\n".join(["Hot kernels", *section(report, "Hot kernels")]),
        *(printed(built, width, part, full_names=True) for part in ("", CONV, "model.1", "unattributed")),
    ]
    assert_snapshot(f"{name}-{width}", "\n\n=====\n".join(part.rstrip() for part in parts) + "\n")


def test_below_a_layers_kernels_stand_the_layers_own_figures(tmp_path: Path) -> None:
    """What is known of the whole run alone is not said of a layer."""
    built = builder.build(runs.sampled_without_pmu(tmp_path), 3)
    sampled = samples_of(built)
    conv = next(layer for layer in sampled.layers if layer.path == CONV)
    assert conv.samples != sampled.samples and conv.wait_share != sampled.wait_share and conv.wait_share is not None
    for path, wait in ((CONV, f"{conv.wait_share:.1%}"), ("model.1", None)):
        text = printed(built, 200, path)
        samples = sum(layer.samples for layer in one_layer_of(built, path).sampled)
        assert f"{samples} samples (cpu-clock" in text
        notes = [line for line in text.splitlines() if "waking them" in line]
        assert [line.endswith(f": {wait}") for line in notes] == ([True] if wait else [])
        assert "unattributed (" not in text and "without a name" not in text
        assert f"whole pass: only {sampled.samples} samples" in text


def test_columns_of_a_modules_layers_are_explained_where_they_are_shown(tmp_path: Path) -> None:
    built = builder.build(runs.sampled(tmp_path), 3)
    for width in (50, 60, 80, 120):
        for text in (printed(built, width, "model.1"), printed(built, width, "")):
            lines = text.splitlines()
            head = next(line for line in lines if line.startswith("layer, its kernels"))
            words = " ".join(text.split())
            assert ("wait: CPU time in OpenMP" in words) is ("wait" in head.split()), width
            assert ("efficiency: busy / (threads x time)" in words) is ("efficiency" in head.split()), width


@pytest.mark.parametrize(
    ("name", "of_kernels", "of_layers"),
    [("sampled_without_pmu", "CPI~", ""), ("sampled", "CPI, LLC MPKI", "CPI of layers")],
)
def test_each_meaning_of_cpi_in_a_table_has_its_footnote(
    name: str, of_kernels: str, of_layers: str, tmp_path: Path
) -> None:
    """A layer's is that of its kernels, or counted on its own; where only kernels are shown, theirs is told alone."""
    built = builder.build(getattr(runs, name)(tmp_path), 3)
    assert any(layer.metrics.get("cpi") is not None for layer in layer_rows(built))

    def told(path: str) -> list[str]:
        text = printed(built, 120, path)
        notes = [line.strip().partition(": ")[0] for line in text[text.index("\nKernels") :].splitlines()]
        return [note for note in notes if note and note in (of_kernels, of_layers)]

    both = [of_kernels, of_layers] if of_layers else [of_kernels]
    assert [told(path) for path in ("", "model.1", CONV)] == [both, both, [of_kernels]]


def test_of_kernels_met_by_chance_there_is_no_table(tmp_path: Path) -> None:
    built = builder.build(runs.sampled_without_pmu(tmp_path), 3)
    assert max(one.samples for one in samples_of(built).kernels if one.layer == ACT) == 2
    assert section_of(printed(built, 80, ACT), "Kernels, sampled") == ["  2 samples in 1 kernel, too few to name one"]


def test_every_part_fits_every_width(tmp_path: Path) -> None:
    built = builder.build(runs.sampled_without_pmu(tmp_path), 3)
    for width in (40, 60, 80, 100, 120, 200):
        for path in ("", CONV, "model"):
            text = printed(built, width, path, full_names=True)
            assert max(map(cell_len, text.splitlines())) <= width
            assert JIT in text, (width, part)


def test_a_modules_kernels_are_those_of_its_layers_together(tmp_path: Path) -> None:
    built = builder.build(runs.sampled_without_pmu(tmp_path))
    sampled = samples_of(built)
    found = one_layer_of(built, "model")
    assert [layer.path for layer in found.layers] == [layer.path for layer in layer_rows(built)]
    assert one_layer_of(built, ROOT).layers == found.layers
    (jit,) = [one for one in found.kernels if one.kernel == JIT]
    whole = kernel(sampled, JIT)
    assert (jit.samples, jit.instructions, jit.layer) == (whole.samples, whole.instructions, "model")
    for figure in ("cpu_ns", "cpi", "cpi_low", "cpi_high"):
        assert getattr(jit, figure) == pytest.approx(getattr(whole, figure), rel=1e-6), figure
    assert jit.share_of_kernel == pytest.approx(1)
    assert sum(one.share or 0 for one in found.kernels) == pytest.approx(1)
    (act,) = one_layer_of(built, "model.1").by_layer[1:]
    assert act.sampled.path == ACT
    assert sum(thread.samples for thread in found.threads) == sum(layer.samples for layer in found.sampled)


def test_a_modules_time_is_that_of_its_own_calls(tmp_path: Path) -> None:
    """And what it does between its layers is in it; the layers' sum stands beside it. Its share is that of its rows:
    this run is an older one, that has none of own code."""
    run = runs.sampled_without_pmu(tmp_path)
    inner_ns = 5_000_000
    inner = (pl.col("path") == "model.1") & (pl.col("kind") == "layer")
    later = pl.when(inner).then(pl.col("end_ns") + inner_ns).otherwise("end_ns")
    runs.change_table(run, "spans", later.alias("end_ns"))
    built = builder.build(run)
    found, module = one_layer_of(built, "model.1"), next(one for one in layers_of(built) if one.path == "model.1")
    assert found.median_ns is not None and found.leaves_median_ns is not None
    assert module.time is not None and found.median_ns == module.time.median_ns
    assert found.median_ns > found.leaves_median_ns + inner_ns - 1
    assert found.share == pytest.approx(found.leaves_share) and found.share is not None
    text = printed(built, 120, "model.1")
    assert f"{found.median_ns / 1e6:.2f} ms (median)" in text
    assert "in its leaf layers" in text
    whole = one_layer_of(built, "model")
    assert (whole.median_ns, whole.share) == (None, None)


def test_a_module_with_one_layer_is_not_that_layer(tmp_path: Path) -> None:
    """It may do more beside it: its type, time and share are its own."""
    built = builder.build(runs.sampled_without_pmu(tmp_path))
    layers = part(built, Layers)
    alone = replaced(built, msgspec.structs.replace(layers, rows=[one for one in layers.rows if one.path != ACT]))
    found, module = one_layer_of(alone, "model.1"), next(one for one in layers.modules if one.path == "model.1")
    assert [one.path for one in found.layers] == [CONV]
    assert (found.leaf, found.type, found.share) == (None, "Block", module.share)
    assert found.leaves_share == found.layers[0].share
    assert (found.leaves_share or 0) < (found.share or 0)
    assert {one.layer for one in found.kernels} == {"model.1"}
    assert [one.sampled.path for one in found.by_layer] == [CONV]
    text = printed(alone, 120, "model.1")
    assert section_of(text, "Layers, in order of execution")
    facts = {name: words for name, _, words in (line.partition("  ") for line in text.splitlines()[1:6])}
    assert facts["type"].strip() == "Block" and facts["layers"].strip() == "1 Conv2d"
    itself = one_layer_of(alone, CONV)
    assert itself.leaf == found.layers[0] and not itself.by_layer


def facts_of(text: str) -> dict[str, str]:
    """The page's first lines, by what stands before them."""
    head = text.partition("\n\n")[0]
    return {name: words.strip() for name, _, words in (line.partition("  ") for line in head.splitlines())}


def test_a_modules_parameters_and_macs_are_its_own_and_those_of_all_below(tmp_path: Path) -> None:
    run = runs.sampled_without_pmu(tmp_path)
    of_block = pl.col("path") == "model.1"
    changes = {"parameters": 2_000_000, "macs": 700_000_000}
    runs.change_table(
        run, "layers", [pl.when(of_block).then(value).otherwise(name).alias(name) for name, value in changes.items()]
    )
    found = one_layer_of(builder.build(run), "model.1")
    assert (found.parameters, found.macs) == (2_000_000, 700_000_000)
    words = facts_of(printed(builder.build(run), 200, "model.1"))["model"]
    assert "2.00 M parameters" in words and "700 M MACs" in words


def test_of_a_module_that_was_never_called_only_its_parameters_are_known(tmp_path: Path) -> None:
    built = builder.build(runs.sampled_without_pmu(tmp_path))
    layers = part(built, Layers)
    model, block = layers.rows[0], layers.modules[0]
    idle = msgspec.structs.replace(model, path="spare.conv", macs=None, calls=None, time=None, share=None)
    spare = msgspec.structs.replace(
        block, path="spare", parameters=16_640, macs=None, calls=None, time=None, share=None
    )
    document = replaced(
        built, msgspec.structs.replace(layers, rows=[*layers.rows, idle], modules=[*layers.modules, spare])
    )
    facts = facts_of(printed(document, 200, "spare"))
    assert facts["model"] == "16.6 k parameters" and "time" not in facts
    assert "never called" in facts["type"]
    assert "not known" not in facts_of(printed(document, 200, "spare.conv"))["model"]


def test_whose_macs_and_bytes_are_not_known_is_said_where_the_wholes_dash_stands(tmp_path: Path) -> None:
    run = runs.sampled_without_pmu(tmp_path)
    last = pl.col("path") == "model.2"
    runs.change_table(
        run, "layers", [pl.when(~last).then(pl.col(name)).alias(name) for name in ("macs", "own_macs", "bytes")]
    )
    built = builder.build(run)
    whole = part(built, Layers).whole
    assert whole is not None and (whole.macs, whole.bytes) == (None, None)
    sentences = [f"{figure} not known of Detect, so neither" for figure in ("MACs", "bytes")]
    assert [words in printed(built, 200) for words in sentences] == [True, True]
    assert not any(words in printed(built, 200, "model.1") for words in sentences)


def test_measured_rates_of_several_layers_are_weighted_by_instructions(tmp_path: Path) -> None:
    built = builder.build(runs.sampled(tmp_path))
    (jit,) = [one for one in one_layer_of(built, "model").kernels if one.kernel == JIT]
    assert jit.cpi == pytest.approx(kernel(samples_of(built), JIT).cpi)
    assert jit.llc_mpki == pytest.approx(kernel(samples_of(built), JIT).llc_mpki)


@pytest.mark.parametrize(
    ("path", "what", "near"),
    [
        ("model.1.cv1.cnv", "there is no layer", CONV),
        ("conv", "may be 2 layers or modules", CONV),
        ("….conv", "may be 2 layers or modules", CONV),
        ("nothing", "there is no layer", "hwprof report names the hottest ones"),
    ],
)
def test_an_unknown_layer_is_refused_with_the_nearest(path: str, what: str, near: str, tmp_path: Path) -> None:
    built = builder.build(runs.sampled(tmp_path))
    with pytest.raises(UsageError, match=what) as caught:
        one_layer_of(built, path)
    assert near in (caught.value.remedy or "")


@pytest.mark.parametrize("glyphs", [UNICODE, ASCII])
def test_a_layer_may_be_named_by_its_end_or_as_a_table_cuts_it(glyphs: Glyphs, tmp_path: Path) -> None:
    built = builder.build(runs.sampled(tmp_path))
    for path in ("cv1.conv", f"{glyphs.ellipsis}.cv1.conv", f"model.{glyphs.ellipsis}.cv1.conv"):
        assert one_layer_of(built, path).path == CONV
    block = one_layer_of(built, "1.cv1")
    assert (block.path, [layer.path for layer in block.layers]) == ("model.1.cv1", [CONV, ACT])


def test_parts_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = runs.sampled_without_pmu(tmp_path)
    assert command(run, "--layer", "model.1", "--format", "json") == 0
    found = json.loads(capsys.readouterr().out)
    assert [layer["path"] for layer in found["layers"]] == [CONV, ACT]
    assert {one["kernel"] for one in found["kernels"]} == {JIT, SILU, BARRIER}
    assert command(run, "--kernels", "--top", "1", "--format", "json") == 0
    found = json.loads(capsys.readouterr().out)
    assert [one["sampled"]["path"] for one in found["layers"]] == [CONV]
    ((jit, layers),) = [(one["kernel"]["kernel"], one["layers"]) for one in found["kernels"]]
    assert (jit, [one["layer"] for one in layers]) == (JIT, [CONV, OTHER_CONV])


def test_the_command_prints_parts_with_full_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = runs.sampled(tmp_path)
    assert command(run, "--kernels", "--width", "100") == 0
    assert "TensorIterator" not in capsys.readouterr().out
    assert command(run, "--kernels", "--full-names", "--width", "100") == 0
    assert "at::native::silu_kernel(at::TensorIterator&)" in capsys.readouterr().out
    assert command(run, "--layer", CONV, "--width", "100") == 0
    assert "\nThreads" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [(("--layer", "any"), "OneLayer"), (("--kernels",), "HotKernels"), (("--python",), "HotPython"), ((), "Document")],
)
def test_every_parts_json_has_its_schema(
    arguments: tuple[str, ...], kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert app.run(["report", *arguments, "--format", "json-schema"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["$ref"] == f"#/$defs/{kind}"


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("--layer", "model.7"), 2, "there is no layer 'model.7'"),
        (("--layer", CONV, "--kernels"), 2, "--kernels and --layer are reports of their own"),
        (("--python", "--kernels"), 2, "--kernels and --python are reports of their own"),
        (("--full-names",), 2, "--full-names goes with"),
    ],
)
def test_bad_usage_is_one_line(
    arguments: tuple[str, ...], code: int, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(runs.sampled(tmp_path), *arguments) == code
    told = capsys.readouterr().err
    assert says in told and told.count("\n") == 1


def test_kernels_of_a_run_without_samples(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = runs.without_pmu(tmp_path)
    assert command(run, "--kernels") == 1
    assert "the sampler was left out" in capsys.readouterr().err
    assert command(run, "--layer", CONV) == 0
    assert "not available: the sampler was left out" in capsys.readouterr().out


def test_python_of_a_run_in_which_nobody_looked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command(runs.sampled(tmp_path), "--python") == 1
    told = capsys.readouterr().err
    assert "nobody looked at Python's stacks" in told and "--pyspy-passes trace" in told


def test_a_layer_without_samples_has_the_kernels_that_were_counted(tmp_path: Path) -> None:
    run = runs.sampled_without_pmu(tmp_path)
    (run.path / "samples.parquet").unlink()
    text = printed(builder.build(run), 80, CONV)
    (row,) = [line for line in section_of(text, "Kernels by instructions") if line.startswith(JIT)]
    assert row.split()[1:5] == ["jit", "400", "k", "100.0%"]
    assert text.count(" not available: ") == 1


def test_selections_can_be_read_back(tmp_path: Path) -> None:
    built = builder.build(runs.sampled(tmp_path))
    for found in (one_layer_of(built, CONV), hot_kernels_of(built, 2)):
        assert msgspec.json.decode(msgspec.json.encode(found), type=type(found)) == found


@pytest.mark.parametrize("name", ["sampled", "sampled_without_pmu"])
def test_rows_of_hot_kernels_add_up(name: str, tmp_path: Path) -> None:
    """With those that have no row, and waiting; what counts as the work of none is on a line below."""
    built = builder.build(getattr(runs, name)(tmp_path), 2)
    text = printed(built, 160)
    rows = section(text.splitlines(), "Hot kernels")
    others = [line for line in rows if re.match(r"\d+ other kernels? ", line)]
    known = [one for one in samples_of(built).kernels if one.layer is None and one.waits is None]
    assert len(others) == (len(known) > 2)
    if others:
        share = sum(one.share or 0 for one in known[2:])
        assert f" {share:.1%}" in others[0] and others[0].startswith(f"{len(known) - 2} other")


@pytest.mark.parametrize(("longest", "told"), [(1.9, False), (18.0, True)])
def test_a_call_that_took_far_longer_than_most_is_told(tmp_path: Path, longest: float, told: bool) -> None:
    """Median and MAD know nothing of the first iterations' page faults."""
    built = builder.build(runs.sampled(tmp_path), 3)
    layers = part(built, Layers)

    def changed(row: Layer) -> Layer:
        if row.path != CONV or row.time is None:
            return row
        time = msgspec.structs.replace(row.time, max_ns=longest * row.time.median_ns)
        return msgspec.structs.replace(row, time=time)

    built = replaced(built, msgspec.structs.replace(layers, rows=[changed(row) for row in layers.rows]))
    (line,) = [line for line in printed(built, 160, CONV).splitlines() if line.startswith("time ")]
    assert (" max " in line) is told
