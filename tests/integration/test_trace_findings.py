"""A real run's budgets, bounds and findings in the real trace processor: those of its report, over its layers."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from hwprof.run.directory import RunDirectory
from tests.support import perfetto
from tests.support.command import TESTS_MODELS, hwprof
from tests.support.requirements import require_module, require_sampler
from tests.support.traced import argument_names, needs_no_quotation_marks

MODEL = ("--model", "tests.support.models.called_operators:factory", "--threads", "1", "--iterations", "12")
LAYERS = {"first", "second", "python"}
ARGUMENTS = """select s.id, a.key, coalesce(a.string_value, a.int_value, a.real_value) as value, s.name, s.category
               from slice s join args a using (arg_set_id) where s.category in ('layer', 'finding', 'stage')"""
OVER = """select f.name, l.name as layer, t.name as track from slice f join slice l on f.ts = l.ts and f.dur = l.dur
          join track t on f.track_id = t.id where f.category = 'finding' and l.category = 'layer'
          and l.name = extract_arg(f.arg_set_id, 'debug.layer')"""

TEXTS = ("rule", "evidence", "meaning", "remedy", "gain_of")


class Found:
    """A run's report as JSON, and its trace as it was written at the end of ``collect``."""

    def __init__(self, folder: Path) -> None:
        options = ("--passes", "measure,trace", "--no-instrumented", "--no-pyspy", "--peaks")
        environment = {**TESTS_MODELS, "XDG_CACHE_HOME": str(folder / "cache")}
        done = hwprof("collect", *MODEL, *options, cwd=folder, environment=environment)
        assert done.returncode == 0, done.stderr
        self.run = RunDirectory.latest(folder / "results")
        said = hwprof("report", str(self.run.path), "--format", "json", cwd=folder)
        self.report: dict[str, Any] = json.loads(said.stdout)
        self.processor = perfetto.load(self.run.path / "trace.pftrace")
        measured = self.run.read("spans").filter((pl.col("iteration") >= 0) & ~pl.col("warmup"))
        self.calls = Counter(measured.filter(pl.col("kind") != "op")["path"])
        self.slices: dict[int, dict[str, Any]] = {}
        for row in self.processor.query(ARGUMENTS):
            of = self.slices.setdefault(row["id"], {"name": row["name"], "category": row["category"]})
            of[row["key"].removeprefix("debug.")] = row["value"]

    def of(self, category: str, name: str) -> list[dict[str, Any]]:
        """The slices outside of warm-up."""
        rows = self.slices.values()
        return [one for one in rows if (one["category"], one["name"]) == (category, name) and not one.get("warmup")]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Found:
    require_module("torch")
    require_sampler()
    return Found(tmp_path_factory.mktemp("findings"))


pytestmark = pytest.mark.alone


def test_the_import_has_nothing_to_complain_of(found: Found) -> None:
    assert {row["name"] for row in found.processor.complaints()} <= {"perf_cpu_lost_records"}
    names = argument_names(found.processor)
    assert {"time_budget.dispatch", "roofline.bound"} <= names  # compute: a sample or two of 276, or none
    assert needs_no_quotation_marks(found.processor, names)


def test_layers_have_the_report_s_budgets(found: Found) -> None:
    budget = found.report["time_budget"]
    layers = [one for one in budget["layers"] if one["path"] in LAYERS]
    assert len(layers) == len(LAYERS)
    for category, one in [("stage", budget["whole"]), *(("layer", one) for one in layers)]:
        parts = {part["part"]: part["share"] for part in one["parts"] if part["share"]}
        slices = found.of(category, one["path"] or "inference")
        assert len(slices) == found.calls[one["path"] or "inference"] > 2
        for shown in slices:
            args = {key.partition(".")[2]: value for key, value in shown.items() if key.startswith("time_budget.")}
            assert args.pop("samples") == one["samples"]
            assert args == pytest.approx(parts, abs=5e-5)


def test_layers_have_the_report_s_bounds(found: Found) -> None:
    roofline = found.report["roofline"]
    leaves = [one for one in roofline["rows"] if one["path"] in LAYERS]
    assert len(leaves) == len(LAYERS)
    for category, one in [("stage", roofline["whole"]), *(("layer", one) for one in leaves)]:
        for shown in found.of(category, one["path"] or "inference"):
            for name in ("bound", "evidence", "confidence", "roof"):
                assert shown.get(f"roofline.{name}") == one[name]


def test_findings_lie_over_their_layers(found: Found) -> None:
    rows = found.report["findings"]["rows"]
    layered = {one["title"]: one["layers"] for one in rows if one["layers"]}
    named = {layer for layers in layered.values() for layer in layers}
    assert named & LAYERS, "small operators are all that there is"
    over = Counter((row["name"], row["layer"]) for row in found.processor.query(OVER))
    assert over == {
        (title, path): found.calls[path] for title, layers in layered.items() for path in layers if path in LAYERS
    }


def test_findings_say_what_the_report_says(found: Found) -> None:
    for number, one in enumerate(found.report["findings"]["rows"], 1):
        slices = found.of("finding", one["title"])
        assert slices
        for shown in slices:
            assert {name: shown[name] for name in TEXTS} == {name: one[name] for name in TEXTS}
            assert (shown["gain_low"], shown["gain_high"]) == pytest.approx(
                (one["gain_low"], one["gain_high"]), abs=5e-5
            )
        track = f"finding {number}: {one['rule'].replace('_', ' ')}"
        query = f"select name from track where name glob '{track} (*)' order by name"
        assert [row["name"] for row in found.processor.query(query)] == [f"{track} (measure)", f"{track} (trace)"]
