"""The report's pages on one subject: ``hwprof report --NAME``. A page is one entry here, and two modules:

- ``hwprof/report/document/hot_NAME.py`` (what it shows): ``PAGE``, its struct, and ``select(document, top)``, which
  takes it from the whole document. Raises ``HwprofError`` where the run has nothing of it.
- ``hwprof/report/text/hot_NAME.py`` (on the terminal): ``show(found, page)``.

The page of a layer (``--layer``) has a path to ask for, and is made beside these.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

if TYPE_CHECKING:
    import msgspec

    from hwprof.report.document.document import Document
    from hwprof.report.text.page import Page


class DocumentModule(Protocol):
    """What a page shows."""

    PAGE: type[msgspec.Struct]

    def select(self, document: Document, top: int) -> msgspec.Struct:
        """The ``top`` rows of each table. Raises ``HwprofError`` where there are none."""


class TextModule(Protocol):
    """A page on the terminal."""

    def show(self, found: Any, page: Page) -> None:
        """Prints it."""


@dataclass(frozen=True)
class ReportPage:
    """One page: the name of its option and modules, and the option's help."""

    name: str
    help: str

    @property
    def document(self) -> DocumentModule:
        """Its module in the room ``document``."""
        return cast(DocumentModule, import_module(f"hwprof.report.document.hot_{self.name}"))

    @property
    def text(self) -> TextModule:
        """Its module in the room ``text``."""
        return cast(TextModule, import_module(f"hwprof.report.text.hot_{self.name}"))


PAGES: Final = (
    ReportPage("findings", "Causes of lost time with evidence and remedies, and what hwprof try brought."),
    ReportPage("kernels", "Of each hot layer its kernels, and of each hot kernel its layers."),
    ReportPage("operators", "The tree of modules and operators, with shapes and what they allocate."),
    ReportPage("python", "Of Python's lines the kernels that they led to, and its functions."),
    ReportPage("lines", "Of the pipeline's lines of Python time, memory and copying (collect --scalene)."),
    ReportPage("cprofile", "Calls of Python's functions by stage (collect --cprofile)."),
    ReportPage("roofline", "The roofline, drawn: this machine's roofs, and how near the layers come to them."),
    ReportPage("memory", "What layers allocate, keep and get anew from the kernel; the process and its allocator."),
    ReportPage("energy", "Joules and watts of the stages and of the layers."),
)
