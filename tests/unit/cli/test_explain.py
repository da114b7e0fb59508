"""``hwprof explain``: terms, metrics with this machine's formula, events; words that nobody knows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hwprof.cli.app import run
from hwprof.collector import registry
from hwprof.glossary import page
from hwprof.glossary.explain import Explanation, explain
from hwprof.glossary.terms import find, terms
from hwprof.hardware.metrics import facts
from hwprof.report.text import figures

DOCUMENTATION = Path(__file__).parents[3] / "docs" / "glossary.md"


def test_the_documentation_is_made_of_the_data() -> None:
    assert DOCUMENTATION.read_text(encoding="utf-8") == page.markdown(registry.metrics()), f"run: {page.COMMAND}"


def test_a_metric_has_its_formula_on_this_machine() -> None:
    ((found,), _) = explain(["cpi"])
    assert found.term is not None and found.term.term == "CPI"
    assert [metric.name for metric in found.metrics] == ["cpi"]
    assert found.metrics[0].formula is not None and "cycles" in found.metrics[0].formula


def test_a_group_has_its_metrics() -> None:
    ((found,), _) = explain(["cache"])
    assert {metric.name for metric in found.metrics} == {
        name for name, metric in facts().items() if metric.group == "cache"
    }
    assert all(metric.formula or metric.missing for metric in found.metrics)


def test_an_event_has_its_meaning() -> None:
    ((found,), _) = explain(["page-faults"])
    assert found.event is not None and found.event.name == "page-faults"


def test_several_words_are_one_term_or_several() -> None:
    assert [found.word for found in explain(["critical", "path"])[0]] == ["critical path"]
    assert [found.word for found in explain(["cpi", "path"])[0]] == ["cpi", "path"]
    assert [found.word for found in explain(["cpi", "rest", "of", "iteration", "L1D", "miss", "%", "ipc"])[0]] == [
        "cpi", "rest of iteration", "L1D miss %", "ipc",
    ]  # fmt: skip


def test_every_unknown_word_is_named_with_its_neighbour() -> None:
    found, error = explain(["fo", "cip", "cpi", "imbalanse"])
    assert [one.word for one in found] == ["cpi"]
    assert error is not None and all(f"'{word}'" in error.message for word in ("fo", "cip", "imbalanse"))
    assert "imbalance (imbalanse)" in (error.remedy or "")


@pytest.mark.parametrize(
    ("word", "near"), [("nonsense", ""), ("max RSS", "max, RSS"), ("imbalanse", "imbalance"), ("instructons", "instr")]
)
def test_only_what_may_be_meant_is_proposed(word: str, near: str) -> None:
    _, error = explain([word])
    question, _, _ = ((error and error.remedy) or "").rpartition("? ")
    assert question.startswith(f"did you mean {near}") if near else question == ""


def test_an_event_of_other_processors_names_them(capsys: pytest.CaptureFixture[str]) -> None:
    """At least one of the two is not this machine's."""
    known = {word: explain([word])[0][0].event for word in ("longest_lat_cache.miss", "ls_dmnd_fills_from_sys.all")}
    assert all(event is not None for event in known.values())
    others = {word: {name.split()[0] for name in event.others} for word, event in known.items() if event is not None}
    assert others["longest_lat_cache.miss"] in (set(), {"Intel"})
    assert others["ls_dmnd_fills_from_sys.all"] in (set(), {"AMD"})
    assert any(others.values()), "no processor is of both"


def test_what_is_known_is_printed_beside_what_is_not(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "cpi", "qqqq"]) == 2
    printed = capsys.readouterr()
    assert printed.out.startswith("CPI:") and "'qqqq'" in printed.err


@pytest.mark.parametrize("mark", ["!", "†", "°"])
def test_a_mark_is_that_of_one_thing(mark: str) -> None:
    ((found,), _) = explain([mark])
    assert found.term is not None
    assert found.term.term == {"!": "FLOP check", "†": "multiplexed", "°": "modelled"}[mark]


@pytest.mark.parametrize("glyphs", [figures.UNICODE, figures.ASCII])
def test_every_mark_of_a_header_can_be_looked_up(glyphs: figures.Glyphs) -> None:
    marks = {"modelled": glyphs.modelled, "multiplexed": glyphs.multiplexed, "instrumented": glyphs.instrumented,
             "different iterations": glyphs.different_iterations}  # fmt: skip
    assert {name: explain([mark])[0][0].term for name, mark in marks.items()} == {name: find(name) for name in marks}


@pytest.mark.parametrize(("word", "title"), [("GFLOP/s°", "GFLOP/s°:"), ("gbytes", "GB/s°:"), ("cpi", "CPI, cycles")])
def test_a_metric_is_called_as_tables_head_it(word: str, title: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", word]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("metric ")]
    assert line.split(": ", 1)[1].startswith(title)


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
