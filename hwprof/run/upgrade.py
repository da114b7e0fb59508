"""Brings an older run.json to this version's form, so that old runs are read like new ones.

Version 1: notes were strings, and a collector's detail was a bare mapping whose meaning hung on the collector's name.
"""

from __future__ import annotations

import re
from typing import Any, Final

_KINDS: Final = {
    "perf": "counting",
    "papi": "counting",
    "sampler": "samples",
    "torch_profiler": "operators",
    "rapl": "energy",
    "uncore": "dram",
    "onednn_verbose": "primitives",
    "instrumented": "instrumented",
}
"""The kind of detail that version 1's collectors kept, by their names."""

_ROLES: Final = {
    "perf": "counter",
    "papi": "counter",
    "instrumented": "counter",
    "callgrind": "counter",
    "sampler": "sampler",
    "torch_profiler": "operators",
    "onednn_verbose": "primitives",
    "memory": "memory",
    "rapl": "energy",
    "uncore": "dram",
}

_RENAMED: Final = {"unavailable_events": "unavailable", "held_to": "restricted_to"}

_NOT_COUNTED: Final = re.compile(r"not counted: (?P<subject>.+?): (?P<why>.+)", re.DOTALL)


def upgraded(raw: Any) -> Any:
    """The decoded JSON of a manifest in the form of this version; what is no manifest is left as it is."""
    if not isinstance(raw, dict) or raw.get("schema_version", 1) != 1:
        return raw
    for record in _mappings(raw.get("passes")):
        for collector in _mappings(record.get("collectors")):
            _upgrade_collector(collector)
    return raw | {"schema_version": 2}


def _upgrade_collector(collector: dict[str, Any]) -> None:
    notes, detail, name = collector.get("notes"), collector.get("detail"), str(collector.get("name"))
    if isinstance(notes, list):
        collector["notes"] = [_note(note) if isinstance(note, str) else note for note in notes]
    if isinstance(detail, dict) and detail and "kind" not in detail:
        renamed = {_RENAMED.get(key, key): value for key, value in detail.items()}
        collector["detail"] = {"kind": _KINDS.get(name, name)} | renamed
    collector.setdefault("role", _ROLES.get(name, "other"))


def _note(text: str) -> dict[str, Any]:
    """Version 1 told what was not counted by how a note began."""
    match = _NOT_COUNTED.fullmatch(text)
    if match is None:
        return {"kind": "other", "text": text}
    reason, remedy = _reason_and_remedy(match["why"])
    return {"kind": "not-available", "text": reason, "subject": match["subject"], "remedy": remedy}


def _reason_and_remedy(why: str) -> tuple[str, str | None]:
    """``REASON (REMEDY)``, whose two parts may hold brackets of their own."""
    if not why.endswith(")"):
        return why, None
    depth = 0
    for at in range(len(why) - 1, 0, -1):
        depth += (why[at] == ")") - (why[at] == "(")
        if depth == 0:
            return why[:at].rstrip(), why[at + 1 : -1]
    return why, None


def _mappings(found: Any) -> list[dict[str, Any]]:
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
