"""The first screen: one screen, whatever the run has."""

from __future__ import annotations

import io
import re
from pathlib import Path

import msgspec
import pytest
from rich.cells import cell_len

from hwprof.analysis import more_samples, run_findings
from hwprof.report.document import builder
from hwprof.report.document.document import Document
from hwprof.report.document.findings import Action, Finding, Findings
from hwprof.report.document.noise import Noise
from hwprof.report.document.overhead import Effect, Overhead
from hwprof.report.document.time_budget import Budget, BudgetPart, TimeBudget
from hwprof.report.text import first_screen, to_do
from hwprof.report.text.console import make_console
from hwprof.report.text.page import Page
from hwprof.run.peaks import NotMeasured
from hwprof.run.trials import Change, Trial, Trials
from hwprof.unavailable import Unavailable
from tests.support import synthetic_variants as runs
from tests.support.document_parts import part, replaced
from tests.support.machine_peaks import ZEN
from tests.support.sampled_report import printed
from tests.support.synthetic_run import build

SCREEN = 24
BUILDERS = {
    "complete": build,
    "without_pmu": runs.without_pmu,
    "zen": runs.zen,
    "hybrid": runs.hybrid,
    "sampled": runs.sampled,
    "sampled_without_pmu": runs.sampled_without_pmu,
    "throttled": runs.throttled,
}


def shown(document: Document, width: int, encoding: str = "utf-8") -> str:
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding=encoding)
    first_screen.show(Page(document, make_console(width, file)))
    file.flush()
    return raw.getvalue().decode(encoding)


def trial(*names: str, value: float, half: float = 0.011) -> Trial:
    changed = Change(value=value, low=value - half, high=value + half)
    return Trial(remedies=list(names), titles=list(names), inference=changed, adopt=["export A=1"])


def action(title: str, tried: Trial | None, high: float = 0.2) -> Action:
    return Action(
        title=title, remedy=title, causes=[f"cause of {title}"], rules=["rule"], evidence="12.0% of the time",
        gain_low=0.0, gain_high=high, gain_of="inference", tried=tried,
    )  # fmt: skip


def with_findings(root: Path, findings: Findings) -> Document:
    document = builder.build(runs.sampled(root), 8)
    return msgspec.structs.replace(document, parts={**document.parts, "findings": findings})


@pytest.mark.parametrize("width", [60, 80, 100, 120, 200])
@pytest.mark.parametrize("name", BUILDERS)
def test_it_is_one_screen_and_no_line_is_longer(name: str, width: int, tmp_path: Path) -> None:
    text = shown(builder.build(BUILDERS[name](tmp_path), 8), width)
    lines = text.splitlines()
    assert all(cell_len(line) <= width for line in lines), max(lines, key=cell_len)
    assert len(lines) <= (SCREEN if width >= 100 else SCREEN + 8)
    assert "WHERE" in text and "DO" in text and "--all" in text


@pytest.mark.parametrize("width", [40, 80])
def test_the_head_ends_its_lines_between_facts(width: int, tmp_path: Path) -> None:
    lines = shown(builder.build(runs.sampled(tmp_path), 8), width).splitlines()
    head = lines[: next(number for number, line in enumerate(lines) if line.startswith(("WHERE", "NOISY", "SLOWED")))]
    assert len(head) > 2 and sum(not line.endswith(" ·") for line in head) == 2, head


def test_what_was_tried_stands_with_what_it_brought_and_what_did_not_help_in_one_line(tmp_path: Path) -> None:
    best, worse = trial("channels_last", value=-0.234), trial("jemalloc", value=0.62, half=0.03)
    combined = trial("channels_last", "keep freed memory", value=-0.35)
    found = Findings(
        rows=[],
        actions=[action("channels_last", best), action("by hand", None, 0.3), action("jemalloc", worse)],
        together=combined,
        trials=Trials(created="", seconds=1.0, inference_ns=None, rows=[best, worse, combined]),
    )
    lines = shown(with_findings(tmp_path, found), 100).splitlines()
    do = next(number for number, line in enumerate(lines) if line.startswith("DO"))
    assert lines[do].split()[1:5] == ["1", "channels_last", "tried", "-23.4%"] and "±1.1" in lines[do]
    assert "2 by hand" in lines[do + 1] and "up to 30%" in lines[do + 1]
    assert "together: channels_last + keep freed memory: tried -35.0% ±1.1" in lines[do + 2]
    assert lines[do + 3] == "       slower: jemalloc +62.0% ±3.0"
    assert lines[do + 4] == "ADOPT  channels_last + keep freed memory" and lines[do + 5] == "  export A=1"
    assert not any("hwprof try" in line for line in lines) and len(lines) <= SCREEN


@pytest.mark.parametrize(("number", "more"), [(4, None), (5, "1 more"), (7, "3 more")])
def test_what_has_no_room_is_counted(number: int, more: str | None, tmp_path: Path) -> None:
    helped = [trial(f"threads={place}", value=-0.5 + 0.01 * place) for place in range(1, number + 1)]
    rows = [action(one.titles[0], one) for one in helped]
    trials = Trials(created="", seconds=1.0, inference_ns=None, rows=helped)
    lines = shown(with_findings(tmp_path, Findings(rows=[], actions=rows, trials=trials)), 100).splitlines()
    last = next(place for place, line in enumerate(lines) if line.startswith("       4 threads=4"))
    told = [(place, line.strip()) for place, line in enumerate(lines) if line.endswith("more: --findings")]
    assert told == ([(last + 1, f"{more}: --findings")] if more else [])


def test_what_nobody_tried_says_how_to(tmp_path: Path) -> None:
    text = shown(with_findings(tmp_path, Findings(rows=[], actions=[action("channels_last", None)])), 100)
    assert "up to 20%" in text and "hwprof try" in text
    assert "no rule found a cause" in shown(with_findings(tmp_path / "other", Findings(rows=[], actions=[])), 100)


def test_one_cause_is_told_of_once_though_several_remedies_have_it(tmp_path: Path) -> None:
    rows = [action("keep freed memory", None), action("tcmalloc", None), action("other", None)]
    rows[2] = msgspec.structs.replace(rows[2], evidence="5.0% of the time")
    text = shown(with_findings(tmp_path, Findings(rows=[], actions=rows)), 100)
    do = text[text.index("DO") :].splitlines()[:3]
    assert do[0].endswith("rule: 12.0% of the time") and do[1].endswith("rule: as 1")
    assert do[2].endswith("rule: 5.0% of the time")


def test_evidence_is_not_cut_on_a_narrow_screen(tmp_path: Path) -> None:
    why = "layout changes: 7.4% (5.8 to 9.4%) of the CPU time in oneDNN's reorders, most in model.12.m.0.cv1.conv"
    one = msgspec.structs.replace(action("channels_last", None), rules=["layout_changes"], evidence=why[16:])
    lines = shown(with_findings(tmp_path, Findings(rows=[], actions=[one])), 80).splitlines()
    do = next(number for number, line in enumerate(lines) if line.startswith("DO"))
    below = [line for line in lines[do + 1 :] if line.startswith(" " * 9)]
    assert " ".join(" ".join(below).split()) == why


def test_what_could_not_be_tried_says_why_and_its_causes_are_named(tmp_path: Path) -> None:
    failed = Trial(
        remedies=["compile"], titles=["torch.compile"], reason="was not ready within 150 s\x1b[31m" + "x" * 200
    )
    row = Finding(
        rule="small_products", title="t", evidence="e", meaning="m", remedy="r", gain_low=0.0, gain_high=0.5,
        gain_of="inference", stage=None, layers=[], remedies=["compile"],
    )  # fmt: skip
    tried = Trials(created="", seconds=1.0, inference_ns=None, rows=[failed])
    lines = shown(with_findings(tmp_path, Findings(rows=[row], actions=[], trials=tried)), 100).splitlines()
    do = next(number for number, line in enumerate(lines) if line.startswith("DO"))
    assert lines[do] == "DO     no remedy could be tried (small products: --findings)"
    assert lines[do + 1].startswith("       not tried: torch.compile: was not ready within 150 s")
    assert "\x1b" not in lines[do + 1] and len(lines[do + 1]) <= 100
    helped = msgspec.structs.replace(tried, rows=[failed, trial("tcmalloc", value=0.1)])
    text = shown(with_findings(tmp_path / "other", Findings(rows=[row], actions=[], trials=helped)), 100)
    assert "no remedy helped (small products: --findings)" in text


def test_a_cause_of_which_the_run_has_all_remedies_is_told_and_nothing_is_to_be_done(tmp_path: Path) -> None:
    row = Finding(
        rule="layout_changes", title="t", evidence="e", meaning="m; it has channels_last already", remedy=None,
        gain_low=0.0, gain_high=0.2, gain_of="inference", stage=None, layers=[],
    )  # fmt: skip
    document = with_findings(tmp_path, Findings(rows=[row], actions=[]))
    assert "DO     no remedy could be tried (layout changes: --findings)" in shown(document, 100)
    whole = printed(document, 100)
    assert "it has channels_last already" in whole and "Nothing is known to help further" in whole
    assert "Try: None" not in whole


def test_letters_of_the_bar_are_those_of_the_line_above(tmp_path: Path) -> None:
    document = builder.build(runs.sampled(tmp_path), 8)
    path = document.hottest.layers[0]

    def budget(name: str | None, **shares: float) -> Budget:
        parts = [
            BudgetPart(part=part, ns=1.0, share=share, share_low=None, share_high=None, samples=1, threads_ns=1.0,
                       threads_share=share)
            for part, share in shares.items()
        ]  # fmt: skip
        return Budget(path=name, elapsed_ns=1.76e6, samples=90, parts=parts)

    found = TimeBudget(
        pass_="trace",
        whole=budget(None, compute=0.58, layout=0.17, waiting=0.25),
        layers=[budget(path, compute=0.5, layout=0.3, waiting=0.2)],
        blocks=[],
        alike=[],
    )
    document = msgspec.structs.replace(document, parts={**document.parts, "time_budget": found})
    text = shown(document, 100)
    assert "WHERE  c compute 58, w waiting 25, l layout 17 (% of inference)" in text
    row = next(line for line in text.splitlines() if line.startswith(path))
    assert "ccccclllww" in row
    longer = msgspec.structs.replace(found, whole=msgspec.structs.replace(found.whole, elapsed_ns=2.5e6))
    document = msgspec.structs.replace(document, parts={**document.parts, "time_budget": longer})
    assert "(% of 2.50 ms, as pass trace took)" in shown(document, 100)


@pytest.mark.parametrize(
    ("ratio", "distinguishable", "told"), [(1.25, True, True), (1.25, False, False), (1.02, True, False)]
)
def test_a_model_that_watching_makes_slower_has_its_own_time_told(
    ratio: float, distinguishable: bool, told: bool, tmp_path: Path
) -> None:
    document = builder.build(build(tmp_path), 8)
    effect = Effect(
        base_ns=2.9e6, observed_ns=ratio * 2.9e6, base_iterations=4, observed_iterations=14, ratio=ratio, error=0.02,
        distinguishable=distinguishable, layers_p25=None, layers_median=None, layers_p75=None,
    )  # fmt: skip
    found = Overhead(watching=effect, counting=None, trace=None, missing_counting=None, missing_trace=None)
    text = shown(msgspec.structs.replace(document, parts={**document.parts, "overhead": found}), 100)
    line = "SLOWED ×1.25 by timing each layer; without that inference takes 2.90 ms"
    assert (line in text.splitlines()) is told and ("SLOWED" in text) is told


def test_weights_that_are_no_numbers_are_told_there_and_in_the_notes(tmp_path: Path) -> None:
    run = build(tmp_path)
    assert run.manifest.workload is not None
    assert "NaN" not in shown(builder.build(run, 8), 100)
    run.manifest.workload.weights_unsound = "3 of 9 tensors hold NaN"
    document = builder.build(run, 8)
    assert "NaN    3 of 9 tensors hold NaN" in shown(document, 100).splitlines()
    assert "3 of 9 tensors hold NaN" in document.notes


def test_it_does_without_unicode(tmp_path: Path) -> None:
    assert shown(builder.build(runs.sampled(tmp_path), 8), 100, "ascii").isascii()


def test_trials_of_a_run_without_findings_are_shown(tmp_path: Path) -> None:
    found = Findings(
        rows=[],
        actions=[action("threads=1", trial("threads=1", value=-0.5))],
        trials=Trials(created="", seconds=1.0, inference_ns=None, rows=[]),
        missing=Unavailable("too few samples"),
    )
    text = shown(with_findings(tmp_path, found), 100)
    assert "DO     no findings: too few samples" in text and "tried -50.0% ±1.1" in text


def test_what_others_took_is_not_taken_for_a_model_without_faults(tmp_path: Path) -> None:
    document = with_findings(tmp_path, Findings(rows=[], actions=[]))
    parts = [BudgetPart(part=name, ns=1.0, share=value, share_low=None, share_high=None, samples=1, threads_ns=1.0,
                        threads_share=value) for name, value in (("preempted", 0.7), ("compute", 0.3))]  # fmt: skip
    whole = Budget(path=None, elapsed_ns=1.0, samples=9, parts=parts)
    budget = TimeBudget(pass_="trace", whole=whole, layers=[], blocks=[], alike=[])
    text = shown(msgspec.structs.replace(document, parts={**document.parts, "time_budget": budget}), 100)
    assert "not known: others had the processor for 70% of the time" in text and "quiet" not in text.replace(
        "wait-quiet", ""
    )


def test_lines_of_a_foreign_run_forge_none(tmp_path: Path) -> None:
    forged = action("a\nFORGED line\x1b[31m", None)
    lines = shown(with_findings(tmp_path, Findings(rows=[], actions=[forged])), 100).splitlines()
    assert not any(line.startswith("FORGED") or "\x1b" in line for line in lines)


def test_what_changes_results_says_so(tmp_path: Path) -> None:
    changed = msgspec.structs.replace(trial("bfloat16", value=-0.6), exact=False)
    assert "results change; rule" in shown(
        with_findings(tmp_path, Findings(rows=[], actions=[action("x", changed)])), 100
    )


@pytest.mark.parametrize(("width", "below"), [(80, True), (100, True), (140, False)])
def test_evidence_that_has_no_room_has_a_line_of_its_own(width: int, below: bool, tmp_path: Path) -> None:
    evidence = "8.1% (6.1 to 10.7%) of the time, most in model.1"
    one = msgspec.structs.replace(action("write results in another process", None), evidence=evidence)
    lines = shown(with_findings(tmp_path, Findings(rows=[], actions=[one])), width).splitlines()
    do = next(number for number, line in enumerate(lines) if line.startswith("DO"))
    assert "1 write results in another process" in lines[do] and "up to 20%" in lines[do]
    assert f"rule: {evidence}" in lines[do + below]


def test_why_it_adopts_another_than_the_first(tmp_path: Path) -> None:
    first, other = trial("compile", value=-0.211, half=0.096), trial("channels_last", value=-0.131, half=0.061)
    first = msgspec.structs.replace(first, peak_bytes=3 << 30, peak_without_bytes=2 << 30)
    tried = Trials(created="", seconds=1.0, inference_ns=None, rows=[first, other])
    actions = [action("compile", first), action("channels_last", other)]
    text = shown(with_findings(tmp_path, Findings(rows=[], actions=actions, trials=tried)), 100)
    assert "ADOPT  channels_last (as good as compile as far as is known, with less memory)" in text
    changes = msgspec.structs.replace(first, exact=False)
    tried = msgspec.structs.replace(tried, rows=[changes])
    text = shown(with_findings(tmp_path / "other", Findings(rows=[], actions=actions[:1], trials=tried)), 100)
    assert "ADOPT  compile, results change\n  export A=1\n" in text


def test_who_disturbed_the_sampled_pass_is_told_though_times_are_quiet(tmp_path: Path) -> None:
    document = builder.build(runs.sampled(tmp_path), 8)
    parts = [
        BudgetPart(part=part, ns=1.0, share=share, share_low=None, share_high=None, samples=50, threads_ns=1.0,
                   threads_share=share)
        for part, share in (("compute", 0.42), ("preempted", 0.58))
    ]  # fmt: skip
    whole = Budget(path=None, elapsed_ns=9e6, samples=100, parts=parts)
    found = TimeBudget(pass_="trace", whole=whole, layers=[], blocks=[], alike=[])
    document = msgspec.structs.replace(document, parts={**document.parts, "time_budget": found})
    lines = shown(document, 200).splitlines()
    noisy = next(line for line in lines if line.startswith("NOISY"))
    assert noisy.split(":")[0] == "NOISY  others had the processor for 58% of pass trace" and "--wait-quiet" in noisy
    nothing = to_do.nothing(Findings(rows=[]), Page(document, make_console(100, io.StringIO())))
    assert nothing.startswith("not known: others had the processor for 58% of the time")


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize(
    ("others", "spread", "drift", "told"),
    [
        (True, True, 1.23, "and times drift: the last third takes 123% longer than the first"),
        (True, False, -0.2, "and times drift: the last third takes 20% less than the first"),
        (False, True, 0.3, "and times drift: the last third takes 30% longer than the first"),
        (False, False, 0.3, "NOISY times drift: the last third of the iterations takes 30% longer than the first."),
        (True, True, None, None),
    ],
)
def test_a_drift_is_told_whatever_else_is_wrong(
    others: bool, spread: bool, drift: float | None, told: str | None, width: int, tmp_path: Path
) -> None:
    document = builder.build(runs.sampled(tmp_path), 8)
    quiet = part(document, Noise)
    found = msgspec.structs.replace(quiet, others=others, spread=spread, median_over_min=1.4, drift=drift)
    lines = shown(replaced(document, found), width).splitlines()
    assert all(cell_len(line) <= width for line in lines)
    first = next(number for number, line in enumerate(lines) if line.startswith("NOISY"))
    until = next(number for number, line in enumerate(lines) if line.startswith("WHERE"))
    block = " ".join(" ".join(lines[first:until]).split())
    assert block.count("drift") == (drift is not None) and (told is None or told in block)
    assert ("other programs" in block) == others and ("times vary" in block) == (spread and not others)


@pytest.mark.parametrize("others", [True, False])
@pytest.mark.parametrize(
    ("known", "told"),
    [
        (None, None),
        (0.0123, "timed iterations, each layer ±1.23%"),
        (0.124, "the time of layer model.0.conv is known to ±12.4%, not to ±2%. Try: --time with more seconds"),
        (45.6, "is known to ±4,560%, not to ±2%."),
    ],
)
def test_how_well_layers_are_known_is_told_where_that_was_wanted(
    others: bool, known: float | None, told: str | None, tmp_path: Path
) -> None:
    document = builder.build(runs.sampled(tmp_path), 8)
    wanted = None if known is None else 0.02
    found = msgspec.structs.replace(
        part(document, Noise), others=others, precision=known, precision_wanted=wanted, precision_layer="model.0.conv"
    )
    text = " ".join(shown(replaced(document, found), 80).split())
    assert told in text if told is not None else "±2%" not in text and "each layer" not in text
    assert ("NOISY" in text) is (others or (known is not None and known > 0.02))


@pytest.mark.parametrize("iterations", [4, 30])
def test_it_is_told_though_nobody_asked_where_iterations_are_enough(iterations: int, tmp_path: Path) -> None:
    document = builder.build(build(tmp_path, iterations=iterations), 8)
    found = part(document, Noise)
    text = " ".join(shown(document, 80).split())
    assert found.precision_wanted is None and (found.precision is None) is (iterations == 4)
    assert ("each layer ±" in text) is (iterations == 30)


@pytest.mark.parametrize(
    ("samples", "low", "high", "told"),
    [(1, 0.2, 1.0, ", by 1 sample only"), (17, 0.33, 0.77, ", by 17 samples only"), (400, 0.51, 0.61, "")],
)
def test_shares_of_few_samples_say_how_few(samples: int, low: float, high: float, told: str, tmp_path: Path) -> None:
    document = builder.build(runs.sampled(tmp_path), 8)
    share = 1.0 if samples == 1 else 0.56
    part = BudgetPart(
        part="compute",
        ns=1.0,
        share=share,
        share_low=low,
        share_high=high,
        samples=samples,
        threads_ns=1.0,
        threads_share=1.0,
    )
    whole = Budget(path=None, elapsed_ns=1.76e6, samples=samples, parts=[part])
    found = TimeBudget(pass_="trace", whole=whole, layers=[], blocks=[], alike=[])
    document = msgspec.structs.replace(document, parts={**document.parts, "time_budget": found})
    assert f"c compute {share:.0%}".removesuffix("%") + f" (% of inference{told})" in shown(document, 100)
    nothing = to_do.nothing(Findings(rows=[]), Page(document, make_console(100, io.StringIO())))
    assert nothing == f"no rule found a cause of lost time{told}"


def test_of_few_samples_no_cause_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_findings, "FEW_SAMPLES", 1_000_000)
    monkeypatch.setattr(more_samples, "ENOUGH", 1_000_000)
    few = builder.build(runs.sampled(tmp_path), 8)
    remedy = few.absent["findings"].remedy or ""
    assert re.fullmatch(r"--frequency \d+ --sample-passes measure --iterations \d+", remedy), "the trace pass does few"
    assert few.absent["findings"].reason.endswith("samples of the inference: too few"), few.absent
    assert "too few" in next(line for line in shown(few, 100).splitlines() if line.startswith("DO"))


def test_rates_take_no_peaks(tmp_path: Path) -> None:
    run = runs.sampled(tmp_path)
    assert run.manifest.peaks is None
    without = shown(builder.build(run), 80)
    head, *further = without.splitlines()
    assert re.search(r" ms · 569 images/s · 421 GFLOP/s$", head)
    assert "397 images/s end to end" in " ".join(line.strip() for line in further)
    run.manifest.peaks = ZEN
    both = " ".join(line.strip() for line in shown(builder.build(run), 80).splitlines())
    assert both.startswith(f"{head}, 81% of FP32 peak"), "the share alone is the peaks'"
    assert max(len(line) for line in [head, *further]) <= 80


def test_where_the_loops_could_not_be_kept_each_page_says_why(tmp_path: Path) -> None:
    """As with a HOME that nobody may write to."""
    run = runs.sampled(tmp_path)
    why = NotMeasured(what="fp32", reason="no cache folder: Read-only file system", remedy="set XDG_CACHE_HOME")
    run.manifest.peaks = msgspec.structs.replace(ZEN, peaks=[], missing=[why])
    run.save_manifest()
    document = builder.build(run)
    absent = document.absent["roofline"]
    assert absent.reason.endswith("were not measured: no cache folder: Read-only file system")
    assert absent.remedy == why.remedy
    assert "roofs (before the passes): no cache folder: Read-only file system. Try: set XDG_CACHE_HOME" in printed(
        document, 300
    )
    (line,) = [line for line in shown(document, 200).splitlines() if line.startswith("not available")]
    assert "roofs" in line


@pytest.mark.parametrize("width", [60, 79, 80, 81, 100, 200])
def test_the_last_lines_are_whole_whatever_the_runs_name_and_the_width(width: int, tmp_path: Path) -> None:
    document = builder.build(runs.sampled(tmp_path), 8)
    name = "20261129-011930-v4tiny.cfg"
    document = msgspec.structs.replace(document, run=msgspec.structs.replace(document.run, name=name))
    *_, before, last = shown(document, width).rstrip("\n").splitlines()
    further = "everything: hwprof report --all; causes: --findings"
    assert last == f"run {name}; {further}" or (before, last) == (f"run {name}", further)
    assert (before == f"run {name}") is (len(f"run {name}; {further}") > width)
