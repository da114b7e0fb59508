from __future__ import annotations

import io
import re
from pathlib import Path

import msgspec
import pytest
from rich.cells import cell_len
from rich.console import Console

from hwprof.errors import UsageError
from hwprof.report.document import builder
from hwprof.report.document.cpu_time import CpuTime
from hwprof.report.document.document import Document
from hwprof.report.document.layers import Layers
from hwprof.report.text import choice, layer_types, report
from hwprof.report.text.page import Page
from hwprof.run.directory import RunDirectory
from hwprof.run.manifest import VideoRecord
from hwprof.run.notes import Note, NoteKind
from tests.support import synthetic_variants as runs
from tests.support.document_parts import part, replaced
from tests.support.snapshots import assert_snapshot, section
from tests.support.synthetic_run import build

BUILDERS = {
    "complete": build,
    "without_pmu": runs.without_pmu,
    "multiplexed": runs.multiplexed,
    "cache": runs.with_cache_events,
    "zen": runs.zen,
    "xeon": runs.xeon,
    "hybrid": runs.hybrid,
    "failed": runs.without_passes,
}


def render(run: RunDirectory, width: int, encoding: str = "utf-8", **options: bool) -> str:
    return print_document(builder.build(run, 3), width, encoding, None, **options)


def print_document(
    built: Document, width: int, encoding: str = "utf-8", metrics: list[str] | None = None, **options: bool
) -> str:
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding=encoding)
    console = Console(file=file, width=width, highlight=False, markup=False, emoji=False, **options)  # type: ignore[arg-type]
    report.render(built, console, None if metrics is None else choice.expand(metrics, built))
    file.flush()
    lines = [line.rstrip() for line in raw.getvalue().decode(encoding).splitlines()]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("name", ["complete", "without_pmu", "zen", "xeon", "hybrid"])
def test_snapshot(name: str, width: int, tmp_path: Path) -> None:
    run = BUILDERS[name](tmp_path)
    run.manifest.hwprof_version = "0.0.0"
    assert_snapshot(f"{name}-{width}", render(run, width))


@pytest.mark.parametrize("name", BUILDERS)
def test_no_line_is_longer_than_the_width_and_no_table_row_wraps(name: str, tmp_path: Path) -> None:
    built = builder.build(BUILDERS[name](tmp_path), 3)
    rows = {width: print_document(built, width).splitlines() for width in (*range(40, 140, 7), 80, 120, 200, 300)}
    for width, lines in rows.items():
        assert max(map(cell_len, lines)) <= width
        if name != "failed":
            stages, hottest = section(lines, "Stages"), section(lines, "Hottest layers")
            assert sum(line.startswith(("model.", "mod")) for line in hottest) == 3, width
            assert sum("inference" in line and "%" in line for line in [*stages, *hottest]) == 2, width


def cell(lines: list[str], row: str, header: str) -> str:
    """What stands below a header (right-aligned) in the row of that name."""
    heads = next(line for line in lines if header in line)
    end = heads.index(header) + len(header)
    found = next(line for line in lines if line.startswith(row))
    return found[:end].split()[-1]


def footnotes_of(lines: list[str]) -> list[str]:
    """The lines below a section's tables."""
    return [line.strip() for line in lines if line.startswith("  ") and not line.startswith("   ")]


def test_the_layer_table_of_a_processor(tmp_path: Path) -> None:
    lines = section(render(runs.xeon(tmp_path), 120).splitlines(), "Hottest layers")
    assert cell(lines, "model.1.cv1.conv", "main|worker") == "1.40|2.80"
    assert cell(lines, "model.1.cv1.conv", "CPI") == "1.83"
    assert "GFLOP/s°  counted" in lines[0], "what was counted stands beside what the shapes ask for"
    notes = footnotes_of(lines)
    assert [len([note for note in notes if note.startswith(word)]) for word in ("LLC MPKI", "main|worker")] == [1, 1]


def test_dashes_of_what_lies_between_layers_have_their_reason(tmp_path: Path) -> None:
    """Its CPU time is known, and so is that of the layers: a reader asks why it has no CPUs."""
    built = builder.build(build(tmp_path), 3)
    used = next(metric for metric in built.metrics if metric.name == "cpus_used")
    assert used.missing is None and used.own_missing is not None
    lines = section(print_document(built, 120).splitlines(), "Hottest layers")
    assert cell(lines, "unattributed", "CPUs") == "–" != cell(lines, "model.0.conv", "CPUs")
    (note,) = [note for note in footnotes_of(lines) if used.own_missing.reason in note]
    assert note.startswith("– CPUs")
    others = [metric for metric in built.metrics if '"counted-time"' not in metric.formula]
    assert others and all(metric.own_missing is None for metric in others)


def left_out(lines: list[str]) -> list[str]:
    """The columns that a section says had no room, and how wide it asks for."""
    (line,) = [line for line in footnotes_of(lines) if line.startswith("left out: ")]
    names, _, width = line.removeprefix("left out: ").partition(". Try: --width ")
    return [*names.split(", "), width]


def test_a_narrow_table_of_layers_has_what_the_guide_reads_and_names_the_rest(tmp_path: Path) -> None:
    built = builder.build(runs.sampled(tmp_path), 3)
    narrow = section(print_document(built, 72).splitlines(), "Hottest layers")
    assert "GFLOP/s°" in narrow[0] and "CPI" in narrow[0] and "min" not in narrow[0].split()
    *names, width = left_out(narrow)
    assert "min" in names
    wide = section(print_document(built, int(width)).splitlines(), "Hottest layers")
    assert all(name in wide[0] for name in names[:-1]), "the last one may be a number of others"
    assert not any("left out" in line for line in wide), "all of them have room there"


def test_what_was_asked_for_and_follows_in_another_table_is_not_left_out(tmp_path: Path) -> None:
    built = builder.build(runs.zen(tmp_path), 3)
    metrics = [metric.name for metric in built.metrics if metric.missing is None]
    lines = section(print_document(built, 80, metrics=metrics).splitlines(), "Hottest layers")
    *names, _ = left_out(lines)
    assert names[0] == "share"
    assert {metric.title for metric in built.metrics}.isdisjoint(names)


def test_images_of_an_iteration_are_told(tmp_path: Path) -> None:
    """Times and MACs are of all of them: twice those of the model for one."""
    run = build(tmp_path)
    assert "1 image per iteration" in render(run, 120) and "per iteration of" not in render(run, 120)
    assert run.manifest.workload is not None
    run.manifest.workload.sources = ["bus.jpg", "zidane.jpg"]
    lines = render(run, 120).splitlines()
    assert any(line.startswith("inputs") and "2 images per iteration" in line for line in lines)
    assert any("2 images" in note for note in footnotes_of(section(lines, "Hottest layers")))
    run.manifest.workload.images_there = 5000
    (inputs,) = [line for line in render(run, 160).splitlines() if line.startswith("inputs")]
    assert inputs.endswith("2 of 5,000 images per iteration (--all-images: all 5,000)")
    for more, says in ((0.66, "66% more"), (-0.112, "11% fewer"), (0.009, None)):
        run.manifest.workload.more_pixels = more
        text = render(run, 160)
        assert ("pixels" in text) == (says is not None)
        assert says is None or f"2 of 5,000 images, which have {says} pixels per iteration" in text


def test_a_videos_frames_are_called_so(tmp_path: Path) -> None:
    run = build(tmp_path)
    assert run.manifest.workload is not None
    run.manifest.workload.sources = ["clip.mp4#0", "clip.mp4#1"]
    run.manifest.workload.images_there = 300
    run.manifest.workload.video = VideoRecord(width=640, height=480, fps=29.97, frames=300, codec="h264")
    lines = [" ".join(line.split()) for line in render(run, 160).splitlines()]
    assert "video 640x480, 29.97 fps, 300 frames, h264" in lines
    assert any(line.endswith("2 of 300 frames per iteration (--all-images: all 300)") for line in lines)
    assert any(
        re.fullmatch(r"rate [\d,.]+ frames/s of the inference · [\d,.]+ frames/s end to end", line) for line in lines
    )
    assert any("of 2 frames" in line for line in lines) and not any("images/s" in line for line in lines)
    run.manifest.workload.video = VideoRecord(width=640, height=480)
    assert any(line.split() == ["video", "640x480"] for line in render(run, 160).splitlines())


def test_the_top_down_section_has_what_the_width_allows(tmp_path: Path) -> None:
    built = builder.build(runs.zen(tmp_path), 3)
    wide = section(print_document(built, 120).splitlines(), "Top-down")
    assert cell(wide, "model.0.conv", "backend %") == "67.5"
    bar = next(line for line in wide if line.startswith("model.0.conv")).split()[-1]
    assert [bar.count(glyph) for glyph in "█▓▒░·"] == [5, 1, 4, 24, 2]
    second = wide[next(number for number, line in enumerate(wide) if line.startswith("model.0.conv")) + 1]
    assert " ".join(second.split()) == "of which 14.5 / 0.5 2.3 / 0.2 5.0 / 5.0 50.6 / 16.9"
    middle = section(print_document(built, 80).splitlines(), "Top-down")
    assert any(line.startswith("  of which ") for line in middle) and not any("█" in line for line in middle)
    narrow = section(print_document(built, 71).splitlines(), "Top-down")
    assert cell(narrow, "model.0.conv", "SMT %") == "5.0"
    assert not any("█" in line or "of which" in line for line in narrow)


def test_only_layers_that_are_off_are_named_in_the_flop_section(tmp_path: Path) -> None:
    lines = section(render(runs.zen(tmp_path), 120).splitlines(), "FLOPs:")
    assert [line.split()[0] for line in lines if line.startswith("model.")] == ["model.1.cv1.conv"]
    assert any("Winograd" in line and "0.46" in line for line in lines)
    narrow = section(render(runs.zen(tmp_path / "narrow"), 60).splitlines(), "FLOPs:")
    assert not any("Winograd" in line and "0.46" in line for line in narrow)
    assert any("Winograd" in line for line in narrow), "below the table"
    (sums,) = [line for line in lines if "358 M" in line and "740 M" in line and "0.484" in line]
    assert "2 of 3" in sums
    assert any("2 layers" in line and "10.0 M" in line for line in lines), "element-wise"


def test_sections_without_their_metrics_are_not_there(tmp_path: Path) -> None:
    text = render(build(tmp_path), 120)
    assert not any(title in text for title in ("Top-down", "FLOPs:", "DRAM traffic", "main|worker"))


def test_chosen_columns_are_exactly_those(tmp_path: Path) -> None:
    built = builder.build(runs.zen(tmp_path), 3)
    lines = section(print_document(built, 120, metrics=["dtlb_mpki", "branch", "ipc"]).splitlines(), "Hottest layers")
    heads = lines[0].split("  ")
    assert {"dTLB MPKI", "br MPKI", "br miss %", "IPC"} <= {head.strip() for head in heads}
    assert "CPI" not in lines[0] and "GFLOP/s" not in lines[0]


def test_chosen_columns_that_have_no_room_follow_in_further_tables(tmp_path: Path) -> None:
    """Before them go the columns that nobody asked for."""
    built = builder.build(runs.zen(tmp_path), 3)
    wanted = choice.expand(["all"], built)
    titles = {metric.title for metric in built.metrics if metric.name in wanted}
    for width in (80, 120, 900):
        lines = section(print_document(built, width, metrics=["all"]).splitlines(), "Hottest layers")
        heads = [line for line in lines if line.startswith("layer")]
        shown = {head.strip().rstrip("°") for line in heads for head in line.split("  ") if head.strip()}
        assert titles - {"GFLOP/s (counted)"} <= shown and {"GFLOP/s (counted)", "counted"} & shown
        assert all(line.startswith("layer ") for line in heads) and (len(heads) == 1) == (width == 900)
        assert not any(line.startswith("  not shown") for line in lines)
    first = section(print_document(built, 80, metrics=["topdown"]).splitlines(), "Hottest layers")[0]
    assert "MACs" not in first and "backend %" in first


def test_a_chosen_metric_that_is_missing_is_a_dash_with_its_reason(tmp_path: Path) -> None:
    built = builder.build(runs.without_pmu(tmp_path), 3)
    lines = section(print_document(built, 120, metrics=["llc_mpki"]).splitlines(), "Hottest layers")
    assert cell(lines, "model.0.conv", "LLC MPKI") == "–"
    (note,) = [line for line in lines if " not available: " in line]
    assert note.startswith("  – LLC MPKI") and runs.REASON in note


def test_a_group_is_what_was_measured_of_it_or_else_all_of_it(tmp_path: Path) -> None:
    built = builder.build(runs.without_pmu(tmp_path), 3)
    assert choice.expand(["system", "threads"], built) == [
        "page_faults", "cpus_used", "parallel_efficiency", "balance"
    ]  # fmt: skip
    assert choice.expand(["branch", "cpi"], built)[0] == "branch_mpki"
    assert "cpi" in choice.expand(["cpi"], built)
    assert "cpi" not in choice.expand(["all"], built)


def test_layers_without_what_they_are_sorted_by_are_counted(tmp_path: Path) -> None:
    """They stand last, behind those that are shown."""
    built = builder.build(build(tmp_path), 1, "cpi")
    layers = part(built, Layers)
    lacking = [msgspec.structs.replace(row, metrics={}) for row in layers.rows[1:]]
    known = replaced(built, msgspec.structs.replace(layers, rows=[layers.rows[0], *lacking]))
    lines = section(print_document(builder.ranked(known, 1, "cpi"), 120).splitlines(), "Hottest layers by cpi")
    called = sum(row.time is not None for row in lacking)
    assert any(line.strip().startswith(f"not shown: {called} layer") for line in lines)
    lines = section(print_document(builder.ranked(known, None, "cpi"), 120).splitlines(), "Hottest layers by cpi")
    assert not any("without cpi" in line for line in lines)


def test_an_unknown_choice_is_refused_with_a_hint(tmp_path: Path) -> None:
    built = builder.build(build(tmp_path))
    with pytest.raises(UsageError, match=r"no metric or group 'cpj'\. Try: cpi.*groups of this run: cpi, "):
        choice.expand(["cpj"], built)
    with pytest.raises(UsageError, match=r"names no metric\. Try: hwprof report --metrics"):
        choice.expand([], built)


def machine_with_pmu(built: Document, *, pmu: bool) -> Document:
    return msgspec.structs.replace(built, machine=msgspec.structs.replace(built.machine, has_core_pmu=pmu))


def test_a_chosen_metric_that_nobody_looked_for_is_a_dash_with_its_reason(tmp_path: Path) -> None:
    built = machine_with_pmu(builder.build(runs.without_pmu(tmp_path), 3), pmu=False)
    assert choice.expand(["dram_gbytes"], built) == ["dram_gbytes"]
    wanted = ["cpi", "dram_gbytes", "topdown"]
    lines = section(print_document(built, 200, metrics=wanted).splitlines(), "Hottest layers")
    assert cell(lines, "model.0.conv", "DRAM GB/s") == cell(lines, "model.0.conv", "backend %") == "–"
    notes = [line for line in lines if "none of its events was counted in this run" in line]
    assert [note.split(". Try: ")[1] for note in notes] == ["collect with --cache-model", "hwprof events topdown"]
    text = print_document(machine_with_pmu(built, pmu=True), 200, metrics=["dram_gbytes"])
    assert "Try: hwprof events dram, or collect with --cache-model" in " ".join(text.split())


def test_the_title_says_which_layers_stand_first(tmp_path: Path) -> None:
    built = builder.build(runs.zen(tmp_path), 3)
    for sort, title in (
        ("gflops", "Layers by gflops, lowest first (3 of 5)"),
        ("cpi", "Hottest layers by cpi (3 of 5)"),
        ("order", "Layers in order of execution (3 of 5)"),
    ):
        assert f"\n{title}\n" in print_document(builder.ranked(built, 3, sort), 80)


def test_kinds_of_core_stand_at_the_head(tmp_path: Path) -> None:
    text = render(runs.hybrid(tmp_path), 120)
    assert "cores     Intel Golden Cove / Raptor Cove (cpu_core): CPUs 0-1" in text
    assert "          Intel Gracemont (cpu_atom): CPUs 2-3" in text
    assert cell(section(text.splitlines(), "Hottest layers"), "model.0.conv", "E-core %") == "50"


def test_what_was_counted_in_different_iterations_is_marked(tmp_path: Path) -> None:
    run = build(tmp_path, iterations=4)
    for record in run.manifest.passes:
        record.event_sets = [["task-clock", "page-faults", "cycles"], ["instructions"]]
        record.iterations = [
            msgspec.structs.replace(iteration, event_set=iteration.index // 2) for iteration in record.iterations
        ]
        record.iterations = [entry for entry in record.iterations if entry.index < 4]
    run.save_manifest()
    text = render(run, 120)
    assert "CPI‡" in text and "CPUs‡" not in text
    assert sum(line.startswith("  ‡ ") for line in text.splitlines()) == 1


def test_missing_counters_are_told_in_one_footnote_and_are_columns_where_asked_for(tmp_path: Path) -> None:
    run = runs.without_pmu(tmp_path)
    asked = print_document(builder.build(run, 3), 200, metrics=["cpi"]).splitlines()
    header = next(line for line in asked if line.startswith("layer "))
    row = next(line for line in asked if line.startswith("model.1.cv1.conv"))
    column = header.index("CPI")
    assert row[column : column + 3].strip() == "–"
    lines = render(run, 200).splitlines()
    headers = [line for line in lines if line.startswith(("layer ", "stage ", "type "))]
    assert len(headers) >= 3 and not any("CPI" in line or "GHz" in line for line in headers)
    footnotes = [line for line in lines if line.startswith("  – ") and " not available: " in line]
    assert len([note for note in footnotes if runs.REASON in note]) == 1
    assert "CPI" in footnotes[0]
    assert "\n".join(lines).count(runs.REMEDY) == 1, "once, at the head"
    assert "1.40" not in "\n".join(lines)


@pytest.mark.parametrize(
    ("resolved", "error", "says"),
    [
        (True, 0.124, "accounted for 206.5% ±12.4 of 1.30 ms per iteration: layers"),
        (True, 0.0001, "accounted for 206.5% ±<0.1 of 1.30 ms per iteration: layers"),
        (True, None, "accounted for 206.5% of 1.30 ms per iteration: layers"),
        (False, 0.6, "accounted for –: 1.30 ms per iteration, known to ±60.0%"),
        (False, None, "accounted for –: 1.30 ms per iteration, and the kernel's account is right to ticks of 1 ms"),
    ],
)
def test_a_share_of_cpu_time_has_its_error_or_says_why_there_is_none(
    tmp_path: Path, resolved: bool, error: float | None, says: str
) -> None:
    """In runs of before the account was right to ticks, those of the machine that was measured on."""
    built = builder.build(runs.without_pmu(tmp_path))
    shares = CpuTime(
        iterations=2, process_cpu_time_ns=1_300_000, layers=1.5, rest_of_inference=0.5, rest_of_iteration=0.065,
        unknown=None, accounted_for=2.065, error=error, tick_ns=1_000_000, resolved=resolved,
    )  # fmt: skip
    text = print_document(msgspec.structs.replace(built, parts={**built.parts, "cpu_time": shares}), 120)
    assert says in " ".join(text.split())


def test_beside_layers_that_overlap_the_rest_is_a_dash_with_its_reason(tmp_path: Path) -> None:
    built = builder.build(runs.without_pmu(tmp_path))
    shares = CpuTime(
        iterations=2, process_cpu_time_ns=130_000_000, layers=1.4, rest_of_inference=-0.45, rest_of_iteration=0.05,
        unknown=None, accounted_for=1.0, error=0.01, tick_ns=1_000_000, resolved=True,
    )  # fmt: skip
    text = print_document(msgspec.structs.replace(built, parts={**built.parts, "cpu_time": shares}), 120)
    assert "unattributed –, outside inference 5.0%; layers overlap" in " ".join(text.split())


def test_a_share_of_cpu_time_that_is_not_known_is_a_dash_with_its_reason(tmp_path: Path) -> None:
    built = builder.build(runs.without_pmu(tmp_path))
    shares = CpuTime(
        iterations=2, process_cpu_time_ns=130_000_000, layers=None, rest_of_inference=None, rest_of_iteration=None,
        unknown="nobody looked", accounted_for=0.679, error=0.01, tick_ns=1_000_000, resolved=True,
    )  # fmt: skip
    text = print_document(msgspec.structs.replace(built, parts={**built.parts, "cpu_time": shares}), 120)
    assert "layers –, unattributed –, outside inference –; not known: nobody looked" in " ".join(text.split())


def test_a_long_list_of_what_is_missing_is_cut(tmp_path: Path) -> None:
    run = runs.without_pmu(tmp_path)
    why = {"reason": runs.REASON, "remedy": None}
    names = [f"event-{number}" for number in range(30)]
    for record in run.manifest.passes:
        record.collectors[0].detail = {"kind": "counting", "unavailable": dict.fromkeys(names, why)}
    run.save_manifest()
    built = builder.build(run)
    text = " ".join(print_document(built, 120).split())
    assert "event-4, event-5 and 24 more (passes measure and trace)" in text and "event-6," not in text
    assert built.not_measured[0].what == ", ".join(names)


def test_what_the_user_listed_is_never_cut(tmp_path: Path) -> None:
    run = runs.without_pmu(tmp_path)
    built = builder.build(run)
    names = [f"event-{number}" for number in range(30)]
    gap = msgspec.structs.replace(built.not_measured[0], lost=names, asked=names[:20])
    text = " ".join(print_document(msgspec.structs.replace(built, not_measured=[gap]), 120).split())
    assert f"{', '.join(names[:20])} and 10 more (pass" in text


def test_a_note_of_a_megabyte_is_cut(tmp_path: Path) -> None:
    run = build(tmp_path)
    before = len(render(run, 120))
    run.manifest.passes[0].collectors[0].notes = [Note(NoteKind.SCOPE, "begins " + "n" * 1_000_000 + "\n ends")]
    after = render(run, 120)
    assert before < len(after) < before + 1000
    assert "begins" in after and " ends" in after


def test_markup_in_reasons_is_text(tmp_path: Path) -> None:
    assert "[QEMU/KVM: -cpu host,pmu=on]" in " ".join(render(runs.without_pmu(tmp_path), 300).split())


def test_names_from_outside_begin_no_line_in_the_head(tmp_path: Path) -> None:
    run = build(tmp_path)
    assert run.manifest.workload is not None
    run.manifest.workload.sources = ["/photos/a\nrun  forged.jpg"]
    run.manifest.workload.results = ["a\nrun  forged.jpg: 12 boxes"]
    lines = render(run, 120).splitlines()
    assert not [line for line in lines if line.startswith("run  forged")]
    assert len([line for line in lines if "a?run  forged.jpg" in line]) == 2


def test_multiplexed_columns_are_marked(tmp_path: Path) -> None:
    text = render(runs.multiplexed(tmp_path), 120)
    assert "CPI†" in text and "GHz†" in text and "CPUs†" not in text
    (note,) = [line for line in text.splitlines() if line.startswith("  † ")]
    assert note.endswith("cycles 50%")
    assert "†" not in render(build(tmp_path / "full"), 120)


def test_what_is_modelled_is_told_of_the_columns_that_are_shown(tmp_path: Path) -> None:
    built = builder.build(runs.with_cache_events(tmp_path), 3)
    for chosen, words in (
        (["gflops"], "2 FLOPs per MAC; over measured time"),
        (["gbytes"], "bytes of tensors; over measured time"),
        (["intensity"], "2 FLOPs per MAC, bytes of tensors"),
    ):
        text = print_document(built, 120, "utf-8", chosen)
        assert f"modelled: {words}; – unknown" in text


def test_layer_types_explain_what_no_table_above_has_explained(tmp_path: Path) -> None:
    console = Console(file=io.StringIO(), width=120, highlight=False, markup=False, emoji=False)
    layer_types.show(Page(builder.build(runs.zen(tmp_path), 3), console))
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    assert "GFLOP/s°" in text and "° modelled: 2 FLOPs per MAC" in text


def test_simulated_figures_are_marked_and_events_explained(tmp_path: Path) -> None:
    text = render(runs.with_cache_events(tmp_path), 120)
    assert "MPKI~" in text and "CPI~" not in text
    assert sum(line.startswith("  ~ simulated") for line in text.splitlines()) == 1
    assert "cache-misses: L2 cache misses (0x0964)" in text


def test_a_failed_run_shows_what_is_known(tmp_path: Path) -> None:
    text = render(runs.without_passes(tmp_path), 80)
    assert "measure: failed: out of memory" in text
    assert "Synthetic CPU" in text
    assert "Stages" not in text


def test_ascii_terminals_get_ascii(tmp_path: Path) -> None:
    text = render(build(tmp_path, iterations=4), 100, encoding="ascii")
    assert "0.918 +-0.018" in text and "####" in text


def test_no_colour_no_escape(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Colour carries nothing: the text is the same with and without."""
    run = build(tmp_path)
    plain = render(run, 100)
    assert "\x1b" not in plain
    coloured = render(run, 100, force_terminal=True)
    assert "\x1b[" in coloured
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[3" not in render(run, 100, force_terminal=True)
