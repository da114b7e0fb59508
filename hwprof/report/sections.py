"""The report's sections, in order: each is one entry here, and one module of its name in every room that shows it."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Final, Protocol, cast

if TYPE_CHECKING:
    from hwprof.report.text.page import Page

SECTIONS: Final = (
    "stages", "layers", "topdown", "flops", "layer_types", "kernels", "threads", "operators", "energy", "dram",
    "primitives", "instrumented",
)  # fmt: skip


class TextModule(Protocol):
    """A section on the terminal: ``hwprof.report.text.NAME``."""

    def show(self, page: Page) -> None:
        """Prints the section; nothing where the run has nothing of it."""


def text_modules() -> Iterator[TextModule]:
    """The sections' modules for the terminal, in order."""
    for name in SECTIONS:
        yield cast(TextModule, import_module(f"hwprof.report.text.{name}"))
