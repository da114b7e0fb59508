"""One list of sections: a made-up one is an entry there and a module in each room, and nothing else in the house."""

from __future__ import annotations

import ast
import csv
import hashlib
import io
import json
from pathlib import Path

import pytest
from rich.console import Console

import hwprof.report
from hwprof.cli import app
from hwprof.report import csv as csv_room
from hwprof.report import document as document_room
from hwprof.report import sections
from hwprof.report import text as text_room
from hwprof.report.csv.files import write_csv_files
from hwprof.report.document import builder
from hwprof.report.json import codec
from hwprof.report.json.codec import json_schema
from hwprof.report.sections import Section
from hwprof.report.text.report import render
from tests.support import synthetic_variants as runs
from tests.support.requirements import require_module
from tests.support.rounded import is_same
from tests.support.synthetic_run import build

REPORT = Path(hwprof.report.__file__).parent
HOUSE = REPORT.parent

MODULES = {
    "document": """
from hwprof.report.document.part import Part
from hwprof.unavailable import Unavailable


class Weather(Part, kw_only=True, frozen=True):
    sunshine: dict[str, int]


PART = Weather


def build(analysis):
    if analysis.main is None:
        return Unavailable("no pass looked out of the window", "hwprof collect")
    return Weather(sunshine={name: len(record.iterations) for name, record in analysis.records.items()})
""",
    "text": """
from hwprof.report.document.weather import Weather


def show(page):
    part = page.part(Weather)
    if part is not None:
        page.title("Weather")
        page.notes([f"{name}: {hours} hours" for name, hours in part.sunshine.items()])
""",
    "csv": """
from hwprof.report.csv.table import Table
from hwprof.report.document.weather import Weather


def files(document):
    part = document.part(Weather)
    return {} if part is None else {
        "weather.csv": Table({"pass": list(part.sunshine), "sunshine_h": list(part.sunshine.values())})
    }
""",
}
ROOMS = {"document": document_room, "text": text_room, "csv": csv_room}


def contents() -> dict[Path, str]:
    """The house as it stands."""
    return {file: hashlib.sha256(file.read_bytes()).hexdigest() for file in HOUSE.rglob("*.py")}


@pytest.fixture
def weather(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The section ``weather``: its own three files, and one entry after the stages."""
    before = contents()
    for room, source in MODULES.items():
        folder = tmp_path / "rooms" / room
        folder.mkdir(parents=True)
        (folder / "weather.py").write_text(source)
        monkeypatch.setattr(ROOMS[room], "__path__", [*ROOMS[room].__path__, str(folder)])
    place = next(number for number, one in enumerate(sections.SECTIONS, 1) if one.name == "stages")
    listed = (*sections.SECTIONS[:place], Section("weather"), *sections.SECTIONS[place:])
    monkeypatch.setattr(sections, "SECTIONS", listed)
    assert contents() == before


@pytest.mark.usefixtures("weather")
def test_a_made_up_section_is_in_json_schema_terminal_and_csv(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = build(tmp_path / "runs")
    assert app.run(["report", str(run.path), "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["weather"] == {"sunshine": {"measure": 4, "trace": 4}}
    names = list(found)
    assert names.index("stages") < names.index("weather") < names.index("layers")
    schema = json_schema()
    require_module("jsonschema").Draft202012Validator(schema).validate(found)
    assert "weather" in schema["$defs"]["Document"]["required"]
    built = builder.build(run)
    assert is_same(codec.decode(codec.encode(built)), built)
    console = Console(file=io.StringIO(), width=100, highlight=False, markup=False, emoji=False)
    render(built, console)
    assert isinstance(console.file, io.StringIO)
    text = "\n".join(line.rstrip() for line in console.file.getvalue().splitlines())
    assert text.index("\nStages\n") < text.index("\nWeather\n  measure: 4 hours\n") < text.index("Hottest layers")
    write_csv_files(run, built)
    rows = list(csv.reader((run.path / "weather.csv").open()))
    assert rows == [["pass", "sunshine_h"], ["measure", "4"], ["trace", "4"]]


@pytest.mark.usefixtures("weather")
def test_a_section_that_a_run_has_nothing_of_says_why(tmp_path: Path) -> None:
    built = builder.build(runs.without_passes(tmp_path))
    found = json.loads(codec.encode(built))
    assert found["weather"] is None
    assert found["absent"]["weather"] == {"reason": "no pass looked out of the window", "remedy": "hwprof collect"}


def test_every_room_has_the_modules_of_its_sections() -> None:
    for section in sections.SECTIONS:
        for room in section.rooms:
            assert (REPORT / room / f"{section.name}.py").exists(), (section.name, room)
            assert getattr(section, room) is not None


@pytest.mark.parametrize("general", ["text/report.py", "csv/files.py", "json/kept.py", "sections.py"])
def test_what_walks_the_list_knows_no_section(general: str) -> None:
    names = {section.name for section in sections.SECTIONS}
    for node in ast.walk(ast.parse((REPORT / general).read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("hwprof.report."):
            assert node.module is not None
            assert node.module.rpartition(".")[2] not in names, (general, node.module)


AGGREGATING = {"join", "join_asof", "group_by", "pivot", "partition_by", "agg", "over", "sort_by", "concat"}


@pytest.mark.parametrize("file", sorted(REPORT.rglob("*.py")), ids=lambda file: str(file.relative_to(REPORT)))
def test_a_report_neither_joins_nor_groups(file: Path) -> None:
    """Frames come from ``analysis`` as they are shown. Strings are joined by ``"...".join`` of a literal only."""
    for node in ast.walk(ast.parse(file.read_text())):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        if node.func.attr in AGGREGATING:
            text = node.func.attr == "join" and not node.keywords and len(node.args) == 1 and _is_text(node.func.value)
            assert text, f"{file.name}:{node.lineno}: .{node.func.attr}()"


def _is_text(value: ast.expr) -> bool:
    """A literal, or one of the page's glyphs."""
    if isinstance(value, ast.Name):
        return value.id == "separator"
    return isinstance(value, ast.Constant | ast.JoinedStr) or (
        isinstance(value, ast.Attribute) and value.attr == "separator"
    )
