"""What owners of times and counts are called that are no leaf layer. No module's path is one of these names."""

from __future__ import annotations

from typing import Final

UNATTRIBUTED: Final = "unattributed"
"""What lies within the whole and in no module."""

WHOLE: Final = "whole"
"""The owner of what everything must add up to: the inference stage, or the iteration where none is marked."""

OWN: Final = " (own)"
"""What ends the owner of a module's own code: what it does itself, between the modules that it calls."""

ROOT_NAME: Final = "(root)"
"""What the model itself is called, whose path is empty."""

MODULE: Final = " (module)"


def path_of(name: str) -> str:
    """The path of a module that is called so: its name, or, where that is an owner's, more than it."""
    return f"{name}{MODULE}" if name in (UNATTRIBUTED, WHOLE, ROOT_NAME) or name.endswith(OWN) else name
