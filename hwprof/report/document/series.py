"""Values over time, summed up, whichever collector brought them: a third party's as well."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from hwprof.report.document.part import Part
from hwprof.unavailable import Unavailable

if TYPE_CHECKING:
    from hwprof.analysis.run_analysis import RunAnalysis


class SeriesSummary(msgspec.Struct, kw_only=True, frozen=True, rename={"pass_": "pass"}):
    """One series in one pass, in its ``unit``."""

    pass_: str  # in which it was read
    series: str  # its name
    unit: str  # of its readings
    readings: int  # how many
    first: float  # reading
    last: float  # reading
    min: float  # the least reading
    mean: float  # of the readings
    max: float  # the most


class Series(Part, kw_only=True, frozen=True):
    """By pass and name. ``main``: the pass whose times the report has."""

    main: str
    rows: list[SeriesSummary]


PART: Final = Series


def build(analysis: RunAnalysis) -> Series | Unavailable:
    """From all completed passes."""
    from hwprof.analysis.series import summary

    if analysis.main is None:
        return Unavailable("no pass was completed")
    found = summary(analysis.run.read("series")).rename({"pass": "pass_"})
    if found.is_empty():
        return Unavailable("no collector read values over time")
    return Series(main=analysis.main.name, rows=[SeriesSummary(**row) for row in found.iter_rows(named=True)])
