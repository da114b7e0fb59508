"""The document as JSON and back, and the schema that it fulfils: a key for each section of the list."""

from __future__ import annotations

import inspect
from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec

from hwprof.report import sections
from hwprof.report.document.document import Document
from hwprof.report.document.header import Header
from hwprof.report.json.numbers import encoded
from hwprof.unavailable import Unavailable

if TYPE_CHECKING:
    from hwprof.report.sections import Section


def encode(document: Document) -> bytes:
    """The document as compact JSON: a key for each field of the header, ``absent``, and one for each section; figures
    as ``numbers`` has them."""
    return msgspec.json.encode({name: msgspec.Raw(encoded(part)) for name, part in _parts(document).items()})


def encode_exactly(document: Document) -> bytes:
    """The same with all digits of every figure, in a tenth of the time."""
    return msgspec.json.encode(_parts(document))


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


def schema_of(kind: type[msgspec.Struct], title: str = "hwprof report") -> dict[str, Any]:
    """The JSON schema of a document or of a part of one, the same under every Python: before 3.13 docstrings have the
    code's indentation in them."""
    schema = msgspec.json.schema(kind)
    for definition in schema["$defs"].values():
        if "description" in definition:
            definition["description"] = inspect.cleandoc(definition["description"])
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title, **schema}


def _parts(document: Document) -> dict[str, Any]:
    return {
        **{name: getattr(document, name) for name in _header_fields()},
        "absent": document.absent,
        **{section.name: document.parts.get(section.name) for section in sections.of_room("document")},
    }


def _header_fields() -> tuple[str, ...]:
    return tuple(field.name for field in msgspec.structs.fields(Header))
