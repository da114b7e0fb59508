"""What a collector reports beside its figures: notes with a kind, so that nobody has to know them by their words."""

from __future__ import annotations

from enum import Enum
from typing import Self

import msgspec

from hwprof.unavailable import Unavailable, explain


class NoteKind(Enum):
    """What a note is about."""

    NOT_AVAILABLE = "not-available"  # the subject could not be measured; the text is the reason
    INCOMPLETE = "incomplete"  # data is missing: lost records, threads or layers without counts
    MULTIPLEXED = "multiplexed"  # counters ran for a part of the time
    SUSPECT = "suspect"  # a figure that may not be what it seems, such as a counter that stayed 0
    OVERHEAD = "overhead"  # what the measuring cost
    SCOPE = "scope"  # what the figures cover, or leave out
    METHOD = "method"  # how it was measured, where that differs from the usual
    OTHER = "other"  # of runs made before notes had kinds


class Note(msgspec.Struct, frozen=True, omit_defaults=True):
    """Something that a reader of the figures must know."""

    kind: NoteKind
    text: str
    subject: str | None = None  # events, a series, a tool: what the text is about
    remedy: str | None = None

    @classmethod
    def not_available(cls, subject: str, why: Unavailable) -> Self:
        """That the subject was not measured, and why."""
        return cls(NoteKind.NOT_AVAILABLE, why.reason, subject, why.remedy)

    def __str__(self) -> str:
        text = explain(self.text, self.remedy)
        if self.kind is NoteKind.NOT_AVAILABLE:
            return f"{self.subject or 'it'} not available: {text}"
        return f"{self.subject}: {text}" if self.subject else text
