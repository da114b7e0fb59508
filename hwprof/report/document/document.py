"""The one document that terminal, JSON and CSV show: a header and one part a section."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from hwprof.report.document.header import Header
from hwprof.report.document.part import Part
from hwprof.unavailable import Unavailable

P = TypeVar("P", bound=Part)


class Document(Header, kw_only=True, frozen=True):
    """The whole report: the header's fields, and a part for each section by its name. A section that the run has
    nothing of has no part; ``absent`` says why."""

    parts: Mapping[str, Part]
    absent: dict[str, Unavailable]
    damaged: tuple[str, ...] = ()  # files of the run that are not what was written: what is made of them is absent

    def part(self, kind: type[P]) -> P | None:
        """A section's part, by its type: ``document.part(Layers)``; None where the run has nothing of it."""
        return next((part for part in self.parts.values() if isinstance(part, kind)), None)
