"""The record of a pass in the manifest: running, then how it ended."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Literal

import polars as pl

from hwprof.errors import FullDiskError, HwprofError, described, is_full_disk, remedy_of_writing
from hwprof.run.directory import RunDirectory
from hwprof.run.manifest import CollectorRecord, PassRecord
from hwprof.session.failure import failure
from hwprof.session.plan import PassPlan

PLANNED: Final = ("environment", "threads", "instruction_set", "times_from")
"""The fields of a pass's record that its plan fills in."""


class PassError(HwprofError):
    """A worker gave up or died. ``foreseen``: no log says more than the message."""

    def __init__(self, message: str, remedy: str | None, exit_code: int, *, foreseen: bool) -> None:
        super().__init__(message, remedy)
        self.exit_code = exit_code
        self.foreseen = foreseen


@contextmanager
def recorded(run: RunDirectory, plan: PassPlan) -> Iterator[PassRecord]:
    """Yields the pass's record, and keeps how the pass ends. Whatever cannot be written becomes a ``PassError``."""
    record = PassRecord(name=plan.name, **{name: getattr(plan, name) for name in PLANNED})
    run.manifest.passes.append(record)
    try:
        with run.room_for_manifest():
            run.save_manifest()
            yield record
    except KeyboardInterrupt as interrupt:
        _end(run, record, "interrupted", record.reason or str(interrupt) or "interrupted by the user")
        raise
    except PassError as error:
        if any(one.status == "completed" for one in run.manifest.passes):
            error.exit_code = 1  # what was asked for can be done: it was
        record.collectors += _lost(plan, record, error)
        _end(run, record, "failed", str(error))
        raise
    except (OSError, pl.exceptions.PolarsError) as error:
        told = cannot_write(run, error)
        _end(run, record, "failed", str(told))
        raise told from error
    except BaseException as error:  # a defect: what the other passes measured is told all the same
        _end(run, record, "failed", described(error))
        raise
    _complete(run, record)


def _lost(plan: PassPlan, record: PassRecord, error: PassError) -> list[CollectorRecord]:
    """The collectors whose data went with the pass: what they were given, and which tools they had, is known."""
    known = {one.name for one in record.collectors}
    planned = (*plan.in_process, *plan.external, *plan.launcher)
    return [failure(one, error) for one in planned if one.name not in known]


def _complete(run: RunDirectory, record: PassRecord) -> None:
    """All of its tables are written: it stays completed, though the manifest may say so only with the next save."""
    record.status = "completed"
    try:
        run.save_manifest()
    except KeyboardInterrupt:
        save_if_possible(run)
        raise
    except OSError as error:
        raise cannot_write(run, error) from error


def _end(run: RunDirectory, record: PassRecord, status: Literal["interrupted", "failed"], reason: str) -> None:
    record.status = status
    record.reason = reason
    save_if_possible(run)


def save_if_possible(run: RunDirectory) -> None:
    """Where that fails the manifest stays as it is: it says "running", which reads as not completed as well."""
    try:
        run.save_manifest()
    except OSError:
        return


def cannot_write(run: RunDirectory, error: Exception) -> PassError:
    """What the user is told."""
    if is_full_disk(error):
        full = FullDiskError(str(run.path))
        return PassError(full.message, full.remedy, full.exit_code, foreseen=True)
    if not isinstance(error, OSError):
        return PassError(f"cannot write to {run.path}: {error}", None, 1, foreseen=True)
    reason = error.strerror or error
    return PassError(f"cannot write to {run.path}: {reason}", remedy_of_writing(error), 1, foreseen=True)
