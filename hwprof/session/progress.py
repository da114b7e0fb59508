"""Who is told what a run is doing."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Who is told what is going on."""

    def phase(self, pass_name: str, text: str, total: int | None) -> None:
        """Another phase of a pass begins; ``total`` steps are expected where that is known."""
        ...

    def step(self) -> None:
        """One step of the phase is done."""
        ...

    def reached(self, done: int, total: int) -> None:
        """The phase has come this far, of what is expected now."""
        ...

    def tell(self, pass_name: str, text: str) -> None:
        """Something that the user should know at once; the phase goes on. May be called from any thread."""
        ...
