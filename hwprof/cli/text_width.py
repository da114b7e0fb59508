"""The option of the commands that print tables."""

from __future__ import annotations

from typing import Final

import click

width_option: Final = click.option(
    "--width", type=click.IntRange(min=40, max=1000), help="Columns of the text. Default: the terminal's, 80 in a pipe."
)
