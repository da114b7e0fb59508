"""The remedies of a run: its own workload again, on the machine that it was measured on, from the same folder."""

from __future__ import annotations

import fcntl
import os
import shlex
import shutil
import stat
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from hwprof.errors import HwprofError, UsageError, of_system
from hwprof.hardware import machine
from hwprof.printable import one_line, printable
from hwprof.remedies.told import told
from hwprof.run.directory import RunDirectory
from hwprof.run.trials import Trials, merged
from hwprof.session.progress import Progress
from hwprof.session.trials.campaign import Campaign
from hwprof.workload.spec import WorkloadSpec

PREFIX: Final = "hwprof-try-"
"""Of temporary folders."""

LOCK_FILE: Final = ".hwprof-try.lock"
"""Locked in each of them for as long as somebody uses it. A process's number tells nobody in another container, which
may have the same folder for temporary files."""

REMEDY: Final = "free some space, or set TMPDIR"


def workload_of(run: RunDirectory) -> WorkloadSpec:
    """What the run did, as it can be done here again. Raises ``UsageError`` where it cannot."""
    manifest = run.manifest
    if not manifest.asked:
        raise UsageError("the run does not say what it was asked for: an older version made it", "hwprof collect --try")
    here = machine.describe()
    if (here.hostname, here.processor) != (manifest.machine.hostname, manifest.machine.processor):
        raise UsageError("the run was measured on another machine", "hwprof collect --try, here")
    _check_folder(manifest.folder)
    try:
        asked = msgspec.convert(manifest.asked, WorkloadSpec, strict=False)
    except msgspec.ValidationError as error:
        raise HwprofError(f"{run.path}/run.json is damaged: asked: {error}") from error
    built = manifest.workload
    return msgspec.structs.replace(asked, forwards=built.forwards) if built is not None else asked


def _check_folder(folder: str) -> None:
    """Whether it is here that the model's code lies, and the run's paths begin; "": an older run does not say. Raises
    ``UsageError``, and ``HwprofError`` where there is no current folder."""
    there = Path(folder).is_dir() if folder else False
    back = f"cd {shlex.quote(printable(folder))}"
    try:
        here = Path.cwd()
    except OSError as error:
        raise HwprofError("the current folder is not there any more", back if there else "cd to one that is") from error
    if folder and Path(folder) != here:
        if not there:
            gone = f"the folder that the run was measured from is not there any more: {one_line(folder)}"
            raise UsageError(gone, "hwprof collect --try, where the model is now")
        raise UsageError("the run was measured from another folder", back)


def remove_leftovers(place: Path) -> None:
    """Takes away what one that was killed could not: its lock went with it. A folder without one is none of ours."""
    for folder in place.glob(f"{PREFIX}*"):
        with suppress(OSError):
            status = folder.lstat()
            if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
                continue
            lock = os.open(folder / LOCK_FILE, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(lock)


@contextmanager
def in_use(folder: Path) -> Iterator[None]:
    """Inside, ``remove_leftovers`` lets it be, whoever calls it. Where a file cannot be locked, it always does."""
    new = folder / f"{LOCK_FILE}.new"
    lock = os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            new.rename(folder / LOCK_FILE)  # never seen without its lock
        yield
    finally:
        os.close(lock)


class Tried(NamedTuple):
    """What came out, and what went wrong all the same: it was interrupted, the workload failed, or it could not be
    kept."""

    trials: Trials  # all that is known of the run
    failure: BaseException | None = None
    none_worked: HwprofError | None = None  # why, where each of the remedies that were tried now has failed


def carry_out(run: RunDirectory, names: Sequence[str], progress: Progress, limit_s: float) -> Tried:
    """Tries them, and keeps what came out in the run, beside what is known there. Raises ``HwprofError``, and
    ``KeyboardInterrupt`` where nothing is known yet."""
    spec = workload_of(run)
    try:
        remove_leftovers(Path(tempfile.gettempdir()))
        with (
            tempfile.TemporaryDirectory(prefix=PREFIX, ignore_cleanup_errors=True) as folder,
            in_use(Path(folder)),
        ):
            campaign = Campaign(spec, Path(folder), progress, limit_s)
            found = campaign.carry_out(names)
    except OSError as error:
        raise HwprofError(f"cannot write temporary files: {of_system(error)}", REMEDY) from error
    failed = none_worked(found)
    try:
        now = RunDirectory.open(run.path)  # another command may have added to it
        now.manifest.trials = found = told(merged(now.manifest.trials, found))
        now.save_manifest()
        run.manifest.trials = found
    except (HwprofError, OSError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        return Tried(found, HwprofError(f"the trials cannot be kept in {run.path}: {reason}"))
    return Tried(found, _kept(campaign.failure), failed)


def none_worked(now: Trials) -> HwprofError | None:
    """Where every remedy that was tried has failed: why the first one did. An earlier trial's success is none of this
    one's."""
    if any(one.works for one in now.rows):
        return None
    reasons = [f"{' + '.join(one.titles)}: {one.reason}" for one in now.rows if one.reason is not None]
    more = f" ({len(reasons) - 1} more failed, too)" if len(reasons) > 1 else ""
    return HwprofError(
        one_line(f"no remedy could be tried{more}: {reasons[0]}") if reasons else "nothing could be tried"
    )


def _kept(failure: BaseException | None) -> BaseException | None:
    """The workload's failure with what became of the rest; Ctrl-C as it is."""
    if not isinstance(failure, HwprofError):
        return failure
    return HwprofError(f"{failure.message}; what was known by then is kept with the run", failure.remedy)
