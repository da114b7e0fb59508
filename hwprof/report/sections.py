"""The report's sections, in order. A section is one entry here, and one module of its name in each room it is in:

- ``hwprof/report/document/NAME.py`` (what it holds): ``PART``, a ``Part``, and ``build(analysis)``, which makes one
  from a run or says why there is none. It is the JSON's key ``NAME``.
- ``hwprof/report/text/NAME.py`` (on the terminal): ``show(page)``, which prints nothing where there is no part.
- ``hwprof/report/csv/NAME.py`` (as files): ``FILES``, what they are, and ``files(document)``, the tables by file name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeAlias, cast

if TYPE_CHECKING:
    from hwprof.analysis.run_analysis import RunAnalysis
    from hwprof.report.csv.table import File, Table
    from hwprof.report.document.document import Document
    from hwprof.report.document.part import Part
    from hwprof.report.text.page import Page
    from hwprof.unavailable import Unavailable

Room: TypeAlias = Literal["document", "text", "csv"]


class DocumentModule(Protocol):
    """What a section holds."""

    PART: type[Part]

    def build(self, analysis: RunAnalysis) -> Part | Unavailable:
        """The section's part of the document, or why there is none."""


class TextModule(Protocol):
    """A section on the terminal."""

    def show(self, page: Page) -> None:
        """Prints the section; nothing where the document has nothing of it."""


class CsvModule(Protocol):
    """A section as files."""

    FILES: Sequence[File]

    def files(self, document: Document) -> dict[str, Table]:
        """Tables by file name; none where the document has nothing of it."""


@dataclass(frozen=True)
class Section:
    """One section, and the rooms that have a module of its name."""

    name: str
    rooms: tuple[Room, ...] = ("document", "text", "csv")

    @property
    def document(self) -> DocumentModule:
        """Its module in the room ``document``."""
        return cast(DocumentModule, import_module(f"hwprof.report.document.{self.name}"))

    @property
    def text(self) -> TextModule:
        """Its module in the room ``text``."""
        return cast(TextModule, import_module(f"hwprof.report.text.{self.name}"))

    @property
    def csv(self) -> CsvModule:
        """Its module in the room ``csv``."""
        return cast(CsvModule, import_module(f"hwprof.report.csv.{self.name}"))


SECTIONS: Final = (
    Section("noise", ("document",)),  # the text's header shows it, and the next two
    Section("overhead", ("document",)),
    Section("cpu_time", ("document",)),
    Section("throughput", ("document",)),  # the first screen and the header show it
    Section("findings"),
    Section("stages"),
    Section("over_time"),
    Section("layers"),
    Section("time_budget"),
    Section("roofline"),
    Section("topdown", ("text",)),  # of the layers' metrics
    Section("flops", ("text",)),
    Section("layer_types"),
    Section("kernels"),
    Section("threads"),
    Section("operators"),
    Section("python"),
    Section("lines"),
    Section("cprofile"),
    Section("memory"),
    Section("energy"),
    Section("dram", ("document", "text")),
    Section("primitives"),
    Section("instrumented"),
    Section("series"),
)


def of_room(room: Room) -> tuple[Section, ...]:
    """The sections that have a module in this room, in order."""
    return tuple(section for section in SECTIONS if room in section.rooms)
