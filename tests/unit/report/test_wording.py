"""How texts are worded: footnotes of one line, the field's words, one format for what is not available."""

from __future__ import annotations

import itertools
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from hwprof.cli.app import COMMANDS, app
from hwprof.collector import registry
from hwprof.glossary.explain import explain, is_known
from hwprof.glossary.terms import is_name, normal
from hwprof.hardware.metrics import MetricFacts, facts
from hwprof.report.document import builder
from hwprof.report.text.footnotes import MOST, fitting, unavailable
from tests.support import column_titles
from tests.support import synthetic_variants as runs
from tests.support.snapshots import SNAPSHOTS
from tests.support.synthetic_run import build

PRIVATE = re.compile(
    r"\b(follow(ed|ing)?|unfollowed|leavings?|tell(s|ing)?|told|sweeps?|stretch(es)?|roster|lookout|spool(ed)?"
    r"|harvest(ed)?|held to|apart|stand-in|births?|pieces of code|hand-?over|handing over|closure|observer|mixed with"
    r"|loses most|nobody|in vain|of its own accord|Remedy)\b"
)
"""Words of our own that the field has others for (see the glossary)."""

MADE_OF_OTHERS = {
    "?_title(metric, paired=paired)", "?sort", "?header", "?marked", "?metric.title", "?title",
    "?_threads(threads)", "?{name.replace('-', ' ').removeprefix('dram ')}",
}  # fmt: skip
"""Titles that are variables: of metrics, of kernels (CPI, CPI~; "kernel, its layers") and of series of DRAM traffic;
the snapshots have these columns."""

ROOT = Path(__file__).parents[3]
DATA = [*(ROOT / "hwprof").rglob("*.toml"), *(ROOT / "collectors").rglob("*.toml")]
PRINTED = ("meaning", "caveat", "reason", "remedy", "notes", "title")
WIDE = sorted(SNAPSHOTS.glob("*-120.txt"))


def footnotes(text: str) -> list[str]:
    """Of a report 120 columns wide: the indented lines below tables (above them stand notes of collectors)."""
    found, below = [], False
    for line in text.splitlines():
        below = below or set(line) == {"─"}
        if not line.strip() or line.startswith("====="):
            below = False
        elif below and line.startswith("  ") and not line.startswith("   ") and "  " not in line.strip():
            found.append(line.strip())
    return found


@pytest.mark.parametrize("snapshot", WIDE, ids=lambda path: path.stem)
def test_a_footnote_is_one_line(snapshot: Path) -> None:
    found = footnotes(snapshot.read_text(encoding="utf-8"))
    assert found
    assert [note for note in found if len(note) > MOST] == []


@pytest.mark.parametrize("snapshot", sorted(SNAPSHOTS.glob("*.txt")), ids=lambda path: path.stem)
def test_reports_use_the_fields_words(snapshot: Path) -> None:
    assert PRIVATE.findall(snapshot.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("snapshot", WIDE, ids=lambda path: path.stem)
def test_every_column_can_be_looked_up(snapshot: Path) -> None:
    lines = snapshot.read_text(encoding="utf-8").splitlines()
    headers = [line for line, below in itertools.pairwise(lines) if set(below) == {"─"}]
    columns = {column for line in headers for column in re.split(r"  +", line.strip())}
    assert columns
    assert [column for column in sorted(columns) if not is_known(column)] == []


@pytest.mark.parametrize("title", sorted(set(column_titles.titles()) - MADE_OF_OTHERS))
def test_every_column_that_a_report_can_print_is_explained_and_not_by_itself(title: str) -> None:
    (found,), _ = explain([title], registry.metrics())
    meanings = [found.term.meaning] if found.term is not None else []
    meanings += [metric.meaning for metric in found.metrics]
    meanings += [way.meaning for metric in found.metrics for way in metric.ways]
    own = {normal(name) for name in (title, *(one for metric in found.metrics for one in (metric.name, metric.title)))}
    assert meanings and own.isdisjoint(map(normal, meanings))


@pytest.mark.parametrize("metric", facts().values(), ids=lambda metric: metric.name)
def test_a_metrics_column_is_explained_as_that_metric(metric: MetricFacts) -> None:
    """With every way in which it can be made: nobody else's word stands before it."""
    modelled = metric.formula is not None and ('"macs"' in metric.formula or '"bytes"' in metric.formula)
    for mark in "°" if modelled else ("", "~", "†"):
        if metric.title + mark == "CPI~":  # a term of its own
            continue
        (found,), _ = explain([metric.title + mark], registry.metrics())
        assert [one.name for one in found.metrics] == [metric.name]
        assert found.term is None or found.term.metric in (None, metric.name)
        assert found.term is None or is_name(metric.title + mark), "of the title without its unit"


@pytest.mark.parametrize("collector", ["instrumented", "callgrind"])
def test_what_a_collector_makes_without_counters_is_explained_as_its_columns_mean_it(collector: str) -> None:
    for metric in registry.metrics()[collector]:
        (found,), _ = explain([metric.name], registry.metrics())
        ways = [way for one in found.metrics for way in one.ways if way.by == collector]
        assert [(way.meaning, way.formula, way.caveat) for way in ways] == [
            (metric.meaning, metric.formula.replace('"', ""), metric.caveat)
        ]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_commands_line_says_what_its_own_help_begins_with(command: str) -> None:
    assert isinstance(app, click.Group)
    found = app.get_command(click.Context(app), command)
    assert found is not None and found.help is not None
    own = " ".join(found.help.split("\n\n")[0].split())
    assert re.match(r"[^,:.]+", COMMANDS[command])[0] == re.match(r"[^,:.]+", own)[0]  # type: ignore[index]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_uses_the_fields_words(command: str) -> None:
    assert isinstance(app, click.Group)
    shown = CliRunner().invoke(app, [command, "--help"], obj={})
    assert shown.exit_code == 0
    assert PRIVATE.findall(shown.output) == []


@pytest.mark.parametrize("file", DATA, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_printed_data_uses_the_fields_words(file: Path) -> None:
    texts = printed(tomllib.loads(file.read_text(encoding="utf-8")))
    assert [text for text in texts if PRIVATE.search(text)] == []


def printed(value: object, key: str = "") -> Iterator[str]:
    """The texts of a data file that reach a reader."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from printed(inner, name)
    elif isinstance(value, list):
        for inner in value:
            yield from printed(inner, key)
    elif isinstance(value, str) and key in PRINTED:
        yield value


def test_the_first_wording_that_fits_is_taken() -> None:
    assert fitting("a" * MOST, "b") == "a" * MOST
    assert fitting("a" * (MOST + 1), "b") == "b"
    assert fitting("a" * (MOST + 1), "b" * (MOST + 1)) == "b" * (MOST + 1)


def test_what_is_not_available_has_one_format(tmp_path: Path) -> None:
    found = builder.build(build(tmp_path / "all"))
    told = unavailable(["CPI", "GHz"], "it is taken", "give it back", found)
    assert told == "CPI, GHz not available: it is taken. Try: give it back"
    assert unavailable(["CPI"], "it is taken", None, found) == "CPI not available: it is taken"
    without = builder.build(runs.without_pmu(tmp_path / "none"))
    assert unavailable(["CPI"], "it is taken", runs.REMEDY, without) == "CPI not available: it is taken", "said above"
    many = [f"metric {number}" for number in range(40)]
    assert unavailable(many, "it is taken", None, found) == "metric 0 and 39 more not available: it is taken"
