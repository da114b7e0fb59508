"""The one document that terminal, JSON and CSV show, made from a run: a header and one part a section."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from hwprof.report import sections
from hwprof.report.document.header import Header, describe
from hwprof.report.document.hottest import Hottest, rank
from hwprof.report.document.layers import Layers
from hwprof.report.document.part import Part
from hwprof.unavailable import Unavailable

if TYPE_CHECKING:
    from hwprof.report.sections import Section
    from hwprof.run.directory import RunDirectory

P = TypeVar("P", bound=Part)

SORT: Final = "time"
"""By what the hottest layers are sorted unless the user asks for something else."""


class Document(Header, kw_only=True, frozen=True):
    """The whole report: the header's fields, and a part for each section by its name. A section that the run has
    nothing of has no part; ``absent`` says why."""

    parts: Mapping[str, Part]
    absent: dict[str, Unavailable]

    def part(self, kind: type[P]) -> P | None:
        """A section's part, by its type: ``document.part(Layers)``; None where the run has nothing of it."""
        return next((part for part in self.parts.values() if isinstance(part, kind)), None)


def build(run: RunDirectory, top: int | None = None, sort: str = SORT) -> Document:
    """The report of a run; ``top`` and ``sort`` choose ``hottest`` only, the rest is everything there is.

    Figures come from the pass ``measure`` (where there is none, from the first completed one, and the document says
    so), operators from ``trace``. Raises ``UsageError`` for an unknown ``sort``, ``HwprofError`` for one not measured.
    """
    from hwprof.analysis.run_analysis import RunAnalysis

    analysis = RunAnalysis(run)
    parts: dict[str, Part] = {}
    absent: dict[str, Unavailable] = {}
    for section in sections.of_room("document"):
        found = section.document.build(analysis)
        if isinstance(found, Unavailable):
            absent[section.name] = found
        else:
            parts[section.name] = found
    document = Document(
        **describe(analysis), hottest=Hottest(sort=SORT, top=None, layers=[]), parts=parts, absent=absent
    )
    return ranked(document, top, sort)


def ranked(document: Document, top: int | None, sort: str) -> Document:
    """The document with other hottest layers. Raises ``UsageError`` for an unknown ``sort``, ``HwprofError`` for one
    that was not measured."""
    layers = document.part(Layers)
    paths = rank(layers.rows, sort, top, document.metrics, document.events) if layers is not None else []
    return msgspec.structs.replace(document, hottest=Hottest(sort=sort, top=top, layers=paths))


def encode(document: Document) -> bytes:
    """The document as compact JSON: a key for each field of the header, ``absent``, and one for each section."""
    return msgspec.json.encode(
        {
            **{name: getattr(document, name) for name in _header_fields()},
            "absent": document.absent,
            **{section.name: document.parts.get(section.name) for section in sections.of_room("document")},
        }
    )


def decode(data: bytes) -> Document:
    """The document from JSON; raises ``msgspec.DecodeError`` or ``msgspec.ValidationError``."""
    found = msgspec.json.decode(data, type=wire(sections.of_room("document")))
    parts = {section.name: getattr(found, section.name) for section in sections.of_room("document")}
    return Document(
        **{name: getattr(found, name) for name in _header_fields()},
        absent=getattr(found, "absent"),  # noqa: B009 (the type is made of the list)
        parts={name: part for name, part in parts.items() if part is not None},
    )


@cache
def wire(every: tuple[Section, ...]) -> type[msgspec.Struct]:
    """What the JSON looks like, as a type: the header's fields, ``absent``, and a key for each section. No other keys
    are taken."""
    header = [
        (field.name, field.type) if field.required else (field.name, field.type, field.default)
        for field in msgspec.structs.fields(Header)
    ]
    own = [(section.name, section.document.PART | None) for section in every]
    return msgspec.defstruct(
        "Document",
        [*header, ("absent", dict[str, Unavailable]), *own],
        kw_only=True,
        forbid_unknown_fields=True,
        namespace={"__doc__": "The whole report: a header, and a part for each section."},
    )


def json_schema() -> dict[str, Any]:
    """The JSON schema (2020-12) that documents fulfil."""
    return schema_of(wire(sections.of_room("document")))


def schema_of(kind: type[msgspec.Struct]) -> dict[str, Any]:
    """The JSON schema of a document or of a part of one."""
    schema = msgspec.json.schema(kind)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "hwprof report", **schema}


def _header_fields() -> tuple[str, ...]:
    return tuple(field.name for field in msgspec.structs.fields(Header))
