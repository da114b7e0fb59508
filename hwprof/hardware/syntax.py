"""How people write what is to be counted: names, and perf's raw syntax (``r20c7``, ``cpu/event=0xc7,umask=0x20/u``)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from hwprof.errors import UsageError

_RAW = re.compile(r"^r(?P<config>[0-9a-fA-F]+)$")
_PMU = re.compile(r"^(?P<pmu>[A-Za-z_][\w.-]*)/(?P<terms>[^/]*)/(?P<modifiers>[A-Za-z]*)$")
_VALUE = re.compile(r"=(0[xX][0-9a-fA-F]+|[0-9]+)$")
_PERF_MODIFIERS = frozenset("ukhGHIpPSDWeb")
_LABEL = "name="


def raw_code(text: str) -> int | None:
    """The code in ``r20c7``; None where the text is something else."""
    match = _RAW.match(text)
    return None if match is None else int(match["config"], 16)


@dataclass(frozen=True)
class Request:
    """One item of the list. Either ``name``, or ``config`` (a raw code), or ``pmu`` with ``terms`` is set."""

    written: str  # as the user wrote it: the event's name in tables, unless it is labelled
    name: str | None = None
    config: int | None = None
    pmu: str | None = None
    terms: str = ""
    label: str | None = None  # perf's name= term
    exclude_user: bool = False
    exclude_kernel: bool = False

    @property
    def shown(self) -> str:
        """What its counts are called."""
        return self.label or self.written

    @property
    def modifiers(self) -> str:
        """``u``, ``k`` or nothing."""
        return "k" if self.exclude_user else "u" if self.exclude_kernel else ""


def parse(text: str) -> list[str]:
    """The items of a list: split at the commas that are outside of slashes. Raises ``UsageError`` for none at all."""
    items = [item.strip() for item in re.findall(r"(?:/[^/]*/|[^,/]|/)+", text)]
    items = [item for item in items if item]
    if not items:
        raise UsageError("the list of events is empty", "hwprof events shows what there is")
    return items


def read(item: str) -> Request:
    """One item understood. Raises ``UsageError`` where it is none, or uses a modifier that counting does not know."""
    if "{" in item or "}" in item:
        raise UsageError(f"{item!r} has a brace", "events are put into groups that fit: write them without braces")
    if "/" in item:
        return _with_pmu(item)
    plain, _, modifiers = item.partition(":")
    exclude_user, exclude_kernel = _excluded(item, modifiers) if ":" in item else (False, False)
    config = raw_code(plain)
    if config is not None and config >= 1 << 64:
        raise UsageError(f"the code of {item!r} does not fit into 64 bits")
    return Request(
        item,
        name=plain if config is None else None,
        config=config,
        exclude_user=exclude_user,
        exclude_kernel=exclude_kernel,
    )


def _with_pmu(item: str) -> Request:
    match = _PMU.match(item)
    if match is None:
        raise UsageError(f"{item!r} is no event", "write it like perf does: cpu/event=0xc7,umask=0x80/u")
    terms = [term.strip() for term in match["terms"].split(",") if term.strip()]
    labels = [term.removeprefix(_LABEL) for term in terms if term.startswith(_LABEL)]
    terms = [term for term in terms if not term.startswith(_LABEL)]
    for term in terms:
        if "=" in term and not _VALUE.search(term):
            raise UsageError(f"{term!r} in {item!r} has no number", "write it like perf does: event=0xc7")
    if not terms:
        raise UsageError(f"{item!r} names no event", "write it like perf does: cpu/event=0xc7,umask=0x80/u")
    if any(not re.fullmatch(r"[\w.:-]+", label) for label in labels):
        raise UsageError(f"the name in {item!r} has other characters than letters, digits and _ . : -")
    exclude_user, exclude_kernel = _excluded(item, match["modifiers"]) if match["modifiers"] else (False, False)
    return Request(
        item,
        pmu=match["pmu"],
        terms=",".join(terms),
        label=labels[-1] if labels else None,
        exclude_user=exclude_user,
        exclude_kernel=exclude_kernel,
    )


def _excluded(item: str, modifiers: str) -> tuple[bool, bool]:
    """Whether user code and the kernel are left out."""
    if set(modifiers) - _PERF_MODIFIERS:
        raise UsageError(f"{item!r} is no event that can be counted by layer", "tracepoints and breakpoints are not")
    if not modifiers or set(modifiers) - {"u", "k"}:
        raise UsageError(f"{item!r} has a modifier that counting does not know", "u (user code) or k (kernel)")
    return "u" not in modifiers, "k" not in modifiers
