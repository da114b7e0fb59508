"""The two ways in which a command ends badly, each with its exit code and what to do next."""

from __future__ import annotations

import errno

from hwprof.unavailable import explain


class HwprofError(Exception):
    """A failure that the user is told about in one line: what went wrong and what to do next.

    ``exit_code`` is 1: the command was understood and could not be carried out.
    """

    exit_code = 1

    def __init__(self, message: str, remedy: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return explain(self.message, self.remedy)


class UsageError(HwprofError):
    """The command line asks for something that does not exist or makes no sense: exit code 2."""

    exit_code = 2


class FullDiskError(HwprofError):
    """What was to be written has no room."""

    def __init__(self, place: str) -> None:
        super().__init__(
            f"cannot write to {place}: no space left on the device",
            "free some space or choose another place with --output",
        )


def is_full_disk(error: BaseException) -> bool:
    """Whether an error of the system or of a library that writes says that the device is full."""
    return getattr(error, "errno", None) == errno.ENOSPC or "no space left" in str(error).lower()
