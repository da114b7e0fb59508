"""The JSON schemas: of the report, as ``hwprof report --format json-schema`` prints it, and of run.json."""

from __future__ import annotations

import json

from hwprof.bench.files import Whole
from hwprof.report.json.codec import schema_of
from hwprof.run.manifest import SCHEMA_VERSION, Manifest
from scripts.docs.commands import output


def report() -> str:
    """Of the document that ``hwprof report --format json`` prints."""
    return output("report", "--format", "json-schema")


def manifest() -> str:
    """Of run.json."""
    return json.dumps(schema_of(Manifest, "run.json"), indent=1, ensure_ascii=False) + "\n"


def bench() -> str:
    """Of a bench's table.json."""
    return json.dumps(schema_of(Whole, "table.json"), indent=1, ensure_ascii=False) + "\n"


def versions() -> str:
    """The ``schema_version`` that each of them has today."""
    document = json.loads(report())
    name = document["$ref"].rpartition("/")[2]
    of_report = document["$defs"][name]["properties"]["schema_version"]["default"]
    return f"- run directory: {SCHEMA_VERSION}\n- report as JSON: {of_report}"
