"""``hwprof explain``: terms, metrics with this machine's formula, events; words that nobody knows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hwprof.cli.app import run
from hwprof.errors import UsageError
from hwprof.glossary import page
from hwprof.glossary.explain import Explanation, explain
from hwprof.glossary.terms import terms
from hwprof.hardware.metrics import facts

DOCUMENTATION = Path(__file__).parents[3] / "docs" / "glossary.md"


def test_the_documentation_is_made_of_the_data() -> None:
    assert DOCUMENTATION.read_text(encoding="utf-8") == page.markdown(), f"run: {page.COMMAND}"


def test_a_metric_has_its_formula_on_this_machine() -> None:
    (found,) = explain(["cpi"])
    assert found.term is not None and found.term.term == "CPI"
    assert [metric.name for metric in found.metrics] == ["cpi"]
    assert found.metrics[0].formula is not None and "cycles" in found.metrics[0].formula


def test_a_group_has_its_metrics() -> None:
    (found,) = explain(["cache"])
    assert {metric.name for metric in found.metrics} == {
        name for name, metric in facts().items() if metric.group == "cache"
    }
    assert all(metric.formula or metric.missing for metric in found.metrics)


def test_an_event_has_its_meaning() -> None:
    (found,) = explain(["page-faults"])
    assert found.event is not None and found.event.name == "page-faults"


def test_several_words_are_one_term_or_several() -> None:
    assert [found.word for found in explain(["critical", "path"])] == ["critical path"]
    assert [found.word for found in explain(["cpi", "path"])] == ["cpi", "path"]
    assert [found.word for found in explain(["cpi", "rest", "of", "iteration", "L1D", "miss", "%", "ipc"])] == [
        "cpi", "rest of iteration", "L1D miss %", "ipc",
    ]  # fmt: skip


def test_every_unknown_word_is_named_with_its_neighbour() -> None:
    with pytest.raises(UsageError) as failure:
        explain(["fo", "cip", "cpi", "imbalanse"])
    assert failure.value.message == "the glossary has no 'fo', 'cip', 'imbalanse'"
    assert "imbalance (imbalanse)" in (failure.value.remedy or "")


@pytest.mark.parametrize("width", [40, 80, 120])
def test_the_text_fits_its_width(width: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", *(term.term for term in terms()), *facts(), "--width", str(width)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if len(line) > width and " " in line.strip()] == []
    assert run(["explain", "--list", "--width", str(width)]) == 0
    assert all(len(line) <= width for line in capsys.readouterr().out.splitlines())


def test_json_is_the_whole_explanation(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "off cpu", "gflops", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [one["word"] for one in found] == ["off cpu", "gflops"]
    assert {*found[0]} == {*Explanation.__struct_fields__}
    assert run(["explain", "--list", "--format", "json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == len(terms())


@pytest.mark.parametrize("arguments", [["imbalanse"], [], ["--list", "cpi"], ["cpi", "--format", "markdown"]])
def test_bad_usage_is_exit_code_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", *arguments]) == 2
    complaint = capsys.readouterr().err
    assert complaint.count("\n") == 1
    assert ("imbalance" in complaint) == (arguments == ["imbalanse"])
