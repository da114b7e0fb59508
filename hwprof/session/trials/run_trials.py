"""The remedies of a run: its own workload again, on the machine that it was measured on, from the same folder."""

from __future__ import annotations

import os
import shlex
import shutil
import stat
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from hwprof.errors import HwprofError, UsageError
from hwprof.hardware import machine
from hwprof.run.directory import RunDirectory
from hwprof.run.trials import Trials, merged
from hwprof.session.progress import Progress
from hwprof.session.trials.campaign import Campaign
from hwprof.workload.spec import WorkloadSpec

PREFIX: Final = "hwprof-try-"
"""Of temporary folders; the process's number follows."""


def workload_of(run: RunDirectory) -> WorkloadSpec:
    """What the run did, as it can be done here again. Raises ``UsageError`` where it cannot."""
    manifest = run.manifest
    if not manifest.asked:
        raise UsageError("the run does not say what it was asked for: an older version made it", "hwprof collect --try")
    here = machine.describe()
    if (here.hostname, here.processor) != (manifest.machine.hostname, manifest.machine.processor):
        raise UsageError("the run was measured on another machine", "hwprof collect --try, here")
    if manifest.folder and Path(manifest.folder) != Path.cwd():  # where its model's code lies, and its paths begin
        raise UsageError("the run was measured from another folder", f"cd {shlex.quote(manifest.folder)}")
    try:
        return msgspec.convert(manifest.asked, WorkloadSpec, strict=False)
    except msgspec.ValidationError as error:
        raise HwprofError(f"{run.path}/run.json is damaged: asked: {error}") from error


def remove_leftovers(place: Path) -> None:
    """Takes away what one that was killed could not."""
    for folder in place.glob(f"{PREFIX}[0-9]*-*"):
        pid = folder.name.removeprefix(PREFIX).partition("-")[0]
        with suppress(OSError):
            status = folder.lstat()
            if stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not Path(f"/proc/{pid}").exists():
                shutil.rmtree(folder, ignore_errors=True)


class Tried(NamedTuple):
    """What came out, and what went wrong all the same: it was interrupted, or could not be kept."""

    trials: Trials
    failure: BaseException | None = None


def carry_out(run: RunDirectory, names: Sequence[str], progress: Progress, limit_s: float) -> Tried:
    """Tries them, and keeps what came out in the run, beside what is known there. Raises ``HwprofError``, and
    ``KeyboardInterrupt`` where nothing is known yet."""
    spec = workload_of(run)
    try:
        remove_leftovers(Path(tempfile.gettempdir()))
        with tempfile.TemporaryDirectory(prefix=f"{PREFIX}{os.getpid()}-") as folder:
            campaign = Campaign(spec, Path(folder), progress, limit_s)
            found = campaign.carry_out(names)
    except OSError as error:
        raise HwprofError(
            f"cannot write temporary files: {error.strerror}", "free some space, or set TMPDIR"
        ) from error
    try:
        now = RunDirectory.open(run.path)  # another command may have added to it
        now.manifest.trials = found = merged(now.manifest.trials, found)
        now.save_manifest()
        run.manifest.trials = found
    except (HwprofError, OSError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        return Tried(found, HwprofError(f"the trials cannot be kept in {run.path}: {reason}"))
    return Tried(found, campaign.interrupt)
