"""Footnotes: one line each, with a longer explanation behind ``hwprof explain WORD``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from hwprof.report.document.document import Document
from hwprof.report.text.grid import Column
from hwprof.unavailable import explain

MOST: Final = 100
"""Characters of a footnote."""


def fitting(*wordings: str) -> str:
    """The first of several wordings that is short enough; the last one where none is."""
    return next((wording for wording in wordings if len(wording) <= MOST), wordings[-1])


def of_columns(shown: Sequence[Column], meanings: Mapping[str, str]) -> str:
    """What columns mean, by their headers: on one line, of those alone that are shown."""
    headers = {column.header for column in shown}
    return "; ".join(dict.fromkeys(words for header, words in meanings.items() if header in headers))


def unavailable(what: Sequence[str], reason: str, remedy: str | None, document: Document) -> str:
    """``CPI, GHz not available: REASON. Try: REMEDY``, without a remedy that the report's head gives already."""
    given = {gap.remedy for gap in document.not_measured}
    names = ", ".join(what)
    few = f"{what[0]} and {len(what) - 1} more" if len(what) > 2 else names
    explained = explain(reason, None if remedy in given else remedy)
    return fitting(f"{names} not available: {explained}", f"{few} not available: {explained}")
