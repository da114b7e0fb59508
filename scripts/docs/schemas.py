"""The JSON schemas: of the report, as ``hwprof report --format json-schema`` prints it, and of run.json."""

from __future__ import annotations

import json

import msgspec

from hwprof.run.manifest import SCHEMA_VERSION, Manifest
from scripts.docs.commands import output

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def report() -> str:
    """Of the document that ``hwprof report --format json`` prints."""
    return output("report", "--format", "json-schema")


def manifest() -> str:
    """Of run.json."""
    schema = {"$schema": DIALECT, "title": "run.json", **msgspec.json.schema(Manifest)}
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"


def versions() -> str:
    """The ``schema_version`` that each of them has today."""
    document = json.loads(report())
    name = document["$ref"].rpartition("/")[2]
    of_report = document["$defs"][name]["properties"]["schema_version"]["default"]
    return f"- run directory: {SCHEMA_VERSION}\n- report as JSON: {of_report}"
