"""docs/csv.md has every column that a CSV file can have."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hwprof.hardware.metrics import csv_unit, facts
from hwprof.report.csv.energy import domain
from hwprof.report.csv.figures import INSTRUMENTED, event_header
from hwprof.report.csv.files import csv_files
from hwprof.report.csv.table import EVENT, LEVEL, METRIC, ZONE
from hwprof.report.document import builder
from hwprof.report.document.document import Document
from hwprof.report.document.energy import Energy
from hwprof.report.document.instrumented import Instrumented
from hwprof.report.document.roofline import Roofline
from scripts.docs import csv_columns
from scripts.docs.pages import DOCS
from tests.support import synthetic_samples
from tests.support import synthetic_variants as runs
from tests.support.synthetic_run import build
from tests.support.synthetic_variants import Builder

PAGE = (DOCS / "csv.md").read_text(encoding="utf-8")
FILES, METRICS = PAGE.split("## Metrics\n")
ROW = re.compile(r"^\| `([^`]+)` \|", re.MULTILINE)


def columns() -> dict[str, list[str]]:
    """The page's columns by file."""
    return {part.split("`", 2)[1]: ROW.findall(part) for part in FILES.split("### ")[1:]}


def pattern(header: str, document: Document) -> re.Pattern[str]:
    """What a header of the page stands for in the files of this document."""
    part = document.part(Instrumented)
    events = [*document.events, *(event for one in (part.passes if part is not None else ()) for event in one.events)]
    roofs, energy = document.part(Roofline), document.part(Energy)
    sources = "|".join(("modelled", *INSTRUMENTED))
    metrics = [f"{re.escape(one.name)}(_({sources}))?_{re.escape(csv_unit(one.unit))}" for one in facts().values()]
    names = {
        METRIC: metrics,
        EVENT: [re.escape(event_header(event)) for event in events],
        LEVEL: [level.lower() for level in roofs.level_gbytes] if roofs is not None else [],
        ZONE: [re.escape(domain(call.zone)) for call in energy.calls] if energy is not None else [],
    }
    wanted = re.escape(header)
    for name, known in names.items():
        wanted = wanted.replace(name, f"({'|'.join(known)})")
    return re.compile(f"{wanted}(_ns)?" if EVENT in header else wanted)


def with_primitives(root: Path) -> object:
    run = runs.sampled(root)
    synthetic_samples.add_primitives(run)
    return run


BUILDERS = (
    build, runs.multiplexed, runs.with_cache_events, runs.zen, runs.xeon, runs.under_roofs, runs.hybrid, runs.sampled,
    runs.sampled_without_pmu, runs.kernels_under_roofs, with_primitives,
)  # fmt: skip


@pytest.mark.parametrize("builder_of", BUILDERS, ids=lambda one: one.__name__)
def test_every_column_of_a_run_is_in_the_page(builder_of: Builder, tmp_path: Path) -> None:
    document = builder.build(builder_of(tmp_path))
    passes = [record.name for record in document.passes]
    known = {
        name.replace("PASS", one): [pattern(header, document) for header in headers]
        for name, headers in columns().items()
        for one in passes
    }
    found = csv_files(document)
    assert "layers.csv" in found
    for name, table in found.items():
        unknown = [header for header in table.columns if not any(one.fullmatch(header) for one in known[name])]
        assert unknown == [], name


def test_every_file_has_its_table_and_every_column_a_meaning() -> None:
    found = columns()
    assert list(found) == [file.name for file in csv_columns.files()]
    assert len(found) == len(set(found)) > 20
    assert all(re.search(rf"`{re.escape(name)}`]\(csv\.md#", (DOCS / "schemas.md").read_text()) for name in found)
    for line in PAGE.splitlines():
        cells = line.split(" | ")
        assert not line.startswith("| `") or (len(cells) == 3 and cells[2].removesuffix(" |").strip()), line


def test_metrics_are_listed_by_their_columns() -> None:
    assert "cpi_cycles_per_instruction" in ROW.findall(METRICS)
    assert len(ROW.findall(METRICS)) == len(facts())
