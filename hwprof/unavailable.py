"""The one type for what is not available, and the one format in which a user reads of it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Unavailable:
    """Why something is not there, and what would change it (if that is known)."""

    reason: str
    remedy: str | None = None  # a command, or what to do; without a full stop

    def __str__(self) -> str:
        return f"not available: {self.explanation}"

    @property
    def explanation(self) -> str:
        """``REASON. Try: REMEDY``, for a sentence that says itself what is not available."""
        return explain(self.reason, self.remedy)


def explain(reason: str, remedy: str | None) -> str:
    """``REASON. Try: REMEDY``; the reason alone where no remedy is known."""
    if not remedy:
        return reason
    stop = "" if reason.endswith(("?", ".")) else "."
    return f"{reason}{stop} Try: {remedy}"
