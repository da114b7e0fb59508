"""Budgets, bounds and findings in the trace are the document's."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import pytest

from hwprof.analysis import run_findings
from hwprof.analysis.findings.facts import Finding
from hwprof.analysis.slice_facts import UNDER_ROOFS
from hwprof.errors import HwprofError
from hwprof.report.document.builder import build
from hwprof.report.document.document import Document
from hwprof.report.document.findings import Findings
from hwprof.report.document.roofline import Roofline, UnderRoofs
from hwprof.report.document.time_budget import Budget, TimeBudget
from hwprof.run.directory import RunDirectory
from hwprof.trace.analysed import NOTHING, analysed
from hwprof.trace.packets import EventType
from hwprof.trace.writer import write_trace
from tests.support import synthetic_run, synthetic_samples
from tests.support import trace_decoding as decoding
from tests.support.document_parts import part
from tests.support.machine_peaks import FOUND

FINDING = Finding("dispatch", "small operators", "20% of the time", "Python", "a batch", 0.0, 0.25, ("model.0.conv",))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    made = synthetic_run.build(tmp_path_factory.mktemp("run"), iterations=6)
    synthetic_samples.add(made)
    made.manifest.peaks = FOUND
    made.save_manifest()
    return made


@pytest.fixture(scope="module")
def both(run: RunDirectory) -> Iterator[tuple[Document, list[decoding.Event]]]:
    """The document, and the events of the trace; a rule found its cause."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_findings, "find_all", lambda facts: [FINDING])
        write_trace(run, run.path / "trace.pftrace")
        yield build(run), decoding.events(io.BytesIO((run.path / "trace.pftrace").read_bytes()))


def slices(events: list[decoding.Event], kind: str, path: str) -> list[decoding.Event]:
    return [
        one for one in events if one.type == EventType.BEGIN and (one.category, one.name) == (kind, path or "(root)")
    ]


def budget_of(budget: Budget) -> dict[str, object]:
    shares: dict[str, object] = {one.part: pytest.approx(one.share, abs=5e-5) for one in budget.parts if one.share}
    return {**shares, "samples": budget.samples}


def test_every_slice_of_a_layer_has_its_time_budget(both: tuple[Document, list[decoding.Event]]) -> None:
    document, events = both
    budget = part(document, TimeBudget)
    whole = [("stage", "inference", budget.whole)]
    modules = [("layer", one.path, one) for one in (*budget.layers, *budget.blocks) if one.path != "unattributed"]
    assert {path for _, path, _ in modules} >= {"model.1", "model.1.cv1.conv"}
    for kind, path, one in whole + modules:
        found = slices(events, kind, path or "")
        assert len(found) == 2 * 7, "two passes, a warm-up and six measured iterations"
        for event in found:
            expected = None if event.annotations["warmup"] else budget_of(one)
            assert event.annotations.get("time_budget") == expected


def bound_of(under: UnderRoofs) -> dict[str, object]:
    assert under.share_of_roof is not None
    return {name: getattr(under, name) for name in UNDER_ROOFS} | {
        "share_of_roof": pytest.approx(under.share_of_roof, abs=5e-5)
    }


def test_every_slice_of_a_leaf_has_its_bound(both: tuple[Document, list[decoding.Event]]) -> None:
    document, events = both
    roofline = part(document, Roofline)
    assert roofline.whole is not None and len(roofline.rows) == 5
    for kind, path, one in [
        ("stage", "inference", roofline.whole),
        *(("layer", row.path, row) for row in roofline.rows),
    ]:
        for event in slices(events, kind, path or ""):
            assert event.annotations.get("roofline") == (None if event.annotations["warmup"] else bound_of(one))


def test_findings_are_those_of_the_document_in_both_passes(both: tuple[Document, list[decoding.Event]]) -> None:
    document, events = both
    (finding,) = part(document, Findings).rows
    found = slices(events, "finding", finding.title)
    assert len(found) == 2 * 6
    for event in found:
        for name in ("rule", "evidence", "meaning", "remedy", "gain_low", "gain_high", "gain_of"):
            assert event.annotations[name] == getattr(finding, name)


def test_a_run_without_samples_and_peaks_reads_no_tables_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = synthetic_run.build(tmp_path)
    monkeypatch.setattr(RunDirectory, "of_pass", None)
    found = analysed(run)
    assert (found.arguments, found.findings, found.failure) == ({}, (), None)


def test_only_the_passes_that_figures_are_made_of_have_them(run: RunDirectory) -> None:
    found = analysed(run)
    assert found.passes == {"measure", "trace"}
    measure, trace = run.manifest.passes
    assert found.of_pass(trace) is found.of_pass(measure) is found
    assert found._replace(passes=frozenset({"trace"})).of_pass(measure) is NOTHING


def test_a_run_that_cannot_be_analysed_has_a_trace_that_says_so(
    run: RunDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(facts: object) -> None:
        raise HwprofError("samples.parquet is damaged")

    monkeypatch.setattr(run_findings, "find_all", fail)
    summary = write_trace(run, tmp_path / "trace.pftrace")
    assert summary.slices == len(run.read("spans")) and summary.findings == 0
    assert summary.notes == ["no time budgets, bounds and findings: samples.parquet is damaged"]
