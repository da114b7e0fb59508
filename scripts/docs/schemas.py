"""The JSON schemas: of the report, as ``hwprof report --format json-schema`` prints it, and of run.json."""

from __future__ import annotations

import json

import msgspec
from click.testing import CliRunner

from hwprof.cli.app import app
from hwprof.run.manifest import Manifest

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def report() -> str:
    """Of the document that ``hwprof report --format json`` prints; raises what the command raises."""
    result = CliRunner().invoke(
        app, ["report", "--format", "json-schema"], obj={"debug": False}, catch_exceptions=False
    )
    return result.stdout


def manifest() -> str:
    """Of run.json."""
    schema = {"$schema": DIALECT, "title": "run.json", **msgspec.json.schema(Manifest)}
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"
