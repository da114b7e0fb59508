"""What ``hwprof layers`` says below its table of how its times came to be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import polars as pl
from rich.console import Console

from hwprof.analysis.forward_times import ForwardTimes
from hwprof.analysis.owners import INFERENCE, OWN
from hwprof.report.document.overhead import effect_of
from hwprof.report.text import figures, header
from hwprof.report.text.layers import OWN_CODE
from hwprof.unavailable import explain

NAMED: Final = 3
"""Paths of modules that are seen in part."""

QUIETER: Final = "end other programs"


def notes(times: ForwardTimes, asked: int, unseen: Sequence[str], console: Console) -> list[str]:
    """A line each: of how many of the ``asked`` runs times are, what watching costs, what is not seen, what (own)
    is."""
    effect = effect_of(times.watching)
    cost = (
        f"watching each layer: {INFERENCE} {header.slowdown(effect, figures.glyphs_of(console.encoding))}"
        if effect
        else ""
    )
    replaced = f"not all calls of {figures.some(unseen, NAMED)} are seen: the model's code replaces them"
    own = times.rows.filter(pl.col("path").str.ends_with(OWN))
    return [*filter(None, [_runs(times, asked), cost, replaced if unseen else "", OWN_CODE if own.height else ""])]


def _runs(times: ForwardTimes, asked: int) -> str:
    """``time: mean of 8 forwards of the first input, 2 disturbed ones left out``."""
    done = times.runs + times.left_out
    said = f"time: mean of {figures.plural(times.runs, 'forward')} of the first input"
    if times.left_out:
        said += f", {figures.plural(times.left_out, 'disturbed one')} left out"
    if done < asked:
        said += f"; the time limit left {done} of {asked:,}"
    if times.disturbed:
        kept = f"{times.disturbed} disturbed: all are kept (--format csv has the least of each)"
        return explain(f"{said}; {kept}", QUIETER)
    return said
