"""oneDNN's verbose text: which primitives were executed, and what the library reports of itself.

A line of it names its fields only once, in a header (``…,info,template:operation,engine,…``), and versions differ in
the words that stand before them, in their order and in whether there is a time stamp. So fields are found by the header
that came last, and lines that do not fit it are counted, never guessed at.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Final

MARKER: Final = re.compile(r"(?:onednn|dnnl|mkldnn)_verbose,")
TEMPLATE: Final = re.compile(r"(?:prim_)?template:(.*)")
VERSION_WORD: Final = re.compile(r"v\d+")
DATA_TYPE: Final = re.compile(r"(?:b?f|s|u|e)\d+\w*|tf32|boolean")
UNKNOWN: Final = frozenset({"", "undef"})
COMPONENTS: Final = ("primitive", "graph")

LONGEST_MS: Final = 9 * 10**12  # nanoseconds are 64-bit integers
EXECUTED: Final = "exec"  # "exec:check" and the like are complaints

BEFORE_HEADERS: Final = [
    "operation",
    "engine",
    "primitive",
    "implementation",
    "prop_kind",
    "memory_descriptors",
    "attributes",
    "auxiliary",
    "problem_desc",
    "exec_time",
]
"""The order that the manuals of versions 1.3 to 2.x give: these had no header yet."""

NAMES: Final = {"prim_kind": "primitive", "impl": "implementation", "prop": "prop_kind", "time": "exec_time"}
"""What older versions call the fields."""

NEEDED: Final = frozenset({"operation", "primitive", "implementation", "exec_time"})


@dataclass(frozen=True)
class Primitive:
    """One executed primitive, in the library's own words; ``begin_ns`` is unix time."""

    primitive: str
    implementation: str
    propagation: str | None
    data_types: str  # "src:f32 wei:f32 dst:f32"
    layouts: str  # "src:abcd wei:Acdb16a dst:aBcd16b"
    attributes: str | None
    algorithm: str | None
    problem: str
    time_ns: int
    begin_ns: int | None


@dataclass
class Verbose:
    """All that was reported."""

    primitives: list[Primitive] = field(default_factory=list)
    version: str | None = None
    instruction_set: str | None = None  # that the library allows itself, in its words
    threads: int | None = None
    not_understood: int = 0  # lines about an execution that did not fit the header
    other: list[str] = field(default_factory=list)  # lines of somebody else


def parse(lines: Iterable[str]) -> Verbose:
    """Reads the text; never fails, whatever stands there."""
    found = Verbose()
    template: list[str] | None = None
    for line in lines:
        marker = MARKER.search(line)
        if marker is None:
            found.other.append(line)
            continue
        if marker.start():
            found.other.append(line[: marker.start()])  # somebody did not end his line
        component, words = _words(line[marker.end() :])
        if component == "graph":
            continue
        if "info" in words[:2]:
            template = _template(words) or template
            _about(found, words)
        elif EXECUTED in words[:2]:
            primitive = _primitive(words, template)
            if primitive is None:
                found.not_understood += 1
            else:
                found.primitives.append(primitive)
    return found


def _words(text: str) -> tuple[str, list[str]]:
    """What a line is about, and its words without those that only name it."""
    words = text.rstrip("\r\n").split(",")
    if VERSION_WORD.fullmatch(words[0]):
        words = words[1:]
    for component in COMPONENTS:
        if component in words[:2]:  # a time stamp may come first
            words.remove(component)
            return component, words
    return "primitive", words


def _template(words: list[str]) -> list[str] | None:
    """The names of the fields, if the line gives them."""
    for number, word in enumerate(words):
        given = TEMPLATE.fullmatch(word)
        if given:
            return [NAMES.get(name, name) for name in [given[1], *words[number + 1 :]]]
    return None


def _about(found: Verbose, words: list[str]) -> None:
    text = ",".join(words[words.index("info") + 1 :])
    for known in re.finditer(r"oneDNN (v.*)|cpu,isa:(.*)|runtime:\w+,nthr:(\d{1,9})(?!\d)", text):
        version, instruction_set, threads = known.groups()
        found.version = version or found.version
        found.instruction_set = instruction_set or found.instruction_set
        found.threads = int(threads) if threads else found.threads


def _primitive(words: list[str], template: list[str] | None) -> Primitive | None:
    names = template or BEFORE_HEADERS
    if len(words) != len(names) or not set(names) >= NEEDED:
        return None
    given = dict(zip(names, words, strict=True))
    time_ns = _milliseconds(given["exec_time"])
    if time_ns is None or given["operation"] != EXECUTED:
        return None
    tensors = _tensors(given.get("memory_descriptors", ""))
    return Primitive(
        primitive=given["primitive"],
        implementation=given["implementation"],
        propagation=_known(given.get("prop_kind", "")),
        data_types=" ".join(f"{name}:{data_type}" for name, data_type, _ in tensors),
        layouts=" ".join(f"{name}:{layout}" for name, _, layout in tensors if layout),
        attributes=_known(given.get("attributes", "")),
        algorithm=_known(given.get("auxiliary", "").removeprefix("alg:")),
        problem=given.get("problem_desc", ""),
        time_ns=time_ns,
        begin_ns=_milliseconds(given.get("timestamp", "")),
    )


def _known(word: str) -> str | None:
    return None if word in UNKNOWN else word


def _milliseconds(text: str) -> int | None:
    """As nanoseconds, without a detour through binary fractions."""
    try:
        value = Decimal(text)
    except InvalidOperation:
        return None
    return int(value.scaleb(6).to_integral_value()) if value.is_finite() and 0 <= value < LONGEST_MS else None


def _tensors(descriptors: str) -> list[tuple[str, str, str]]:
    """Name, data type and layout of each tensor: ``src:f32:a:blocked:abcd::f0`` or, before v3.1,
    ``src_f32:a:blocked:abcd:f0``. One that is not there (``bia:undef::undef:::``) is left out."""
    tensors = []
    for descriptor in descriptors.split():
        parts = descriptor.split(":")
        name, data_type, rest = parts[0], parts[1] if len(parts) > 1 else "", parts[2:]
        if not DATA_TYPE.fullmatch(data_type):
            name, _, data_type = parts[0].rpartition("_")
            rest = parts[1:]
        if name and DATA_TYPE.fullmatch(data_type):
            tensors.append((name, data_type, _layout(rest)))
    return tensors


def _layout(rest: list[str]) -> str:
    """``blocked:abcd`` is abcd; other formats (``any``, ``opaque``) have a name only."""
    _, kind, tag = [*rest, "", "", ""][:3]
    return tag or kind
