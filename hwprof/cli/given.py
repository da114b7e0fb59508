"""Whether an option was asked for, or has its default."""

from __future__ import annotations

import click
from click.core import ParameterSource


def given(name: str) -> bool:
    """Whether the user gave this option of the command that runs, be it the default's value. Where no command runs,
    every value was given by whoever calls."""
    context = click.get_current_context(silent=True)
    return context is None or context.get_parameter_source(name) not in (None, ParameterSource.DEFAULT)
