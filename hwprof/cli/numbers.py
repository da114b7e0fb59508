"""Numbers on the command line."""

from __future__ import annotations

import math
from typing import Any, Final

import click

TRY_S: Final = 300.0
"""For so long remedies are tried, unless the user says otherwise."""


class RealRange(click.FloatRange):
    """A range of numbers; NaN lies in none, which click's own comparisons do not find."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """As click does it; NaN is a usage error."""
        number = super().convert(value, param, ctx)
        if math.isnan(number):
            self.fail(f"{value} is not a number.", param, ctx)
        return number
