"""The two ways in which a command ends badly, each with its exit code and what to do next."""

from __future__ import annotations


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
        return f"{self.message} ({self.remedy})" if self.remedy else self.message


class UsageError(HwprofError):
    """The command line asks for something that does not exist or makes no sense: exit code 2."""

    exit_code = 2
