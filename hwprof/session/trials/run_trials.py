"""The remedies of a run: its own workload again, on the machine that it was measured on, from the same folder."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from hwprof.errors import HwprofError, UsageError
from hwprof.hardware import machine
from hwprof.run.directory import RunDirectory
from hwprof.run.trials import Trials
from hwprof.session.progress import Progress
from hwprof.session.trials.campaign import Campaign
from hwprof.workload.spec import WorkloadSpec

FOLDER: Final = "trials"


def workload_of(run: RunDirectory) -> WorkloadSpec:
    """What the run did, as it can be done here again. Raises ``UsageError`` where it cannot."""
    manifest = run.manifest
    if not manifest.asked:
        raise UsageError("the run does not say what it was asked for: an older version made it", "hwprof collect --try")
    here = machine.describe()
    if (here.hostname, here.processor) != (manifest.machine.hostname, manifest.machine.processor):
        raise UsageError("the run was measured on another machine", "hwprof collect --try, here")
    if (
        manifest.folder and Path(manifest.folder) != Path.cwd()
    ):  # its model is that folder's code, and its paths begin there
        raise UsageError("the run was measured from another folder", f"cd {shlex.quote(manifest.folder)}")
    try:
        return msgspec.convert(manifest.asked, WorkloadSpec, strict=False)
    except msgspec.ValidationError as error:
        raise HwprofError(f"{run.path}/run.json is damaged: asked: {error}") from error


def carry_out(
    run: RunDirectory, names: Sequence[str], progress: Progress, limit_s: float
) -> tuple[Trials, KeyboardInterrupt | None]:
    """Tries them, and keeps what came out in the run; beside it what ended it early. Raises ``HwprofError``, and
    ``KeyboardInterrupt`` where nothing is known yet."""
    spec = workload_of(run)
    folder = run.path / "raw" / FOLDER
    try:
        folder.mkdir(parents=True, exist_ok=True)
        campaign = Campaign(spec, folder, progress, limit_s)
        found = run.manifest.trials = campaign.carry_out(names)
        run.save_manifest()
    except OSError as error:
        raise HwprofError(f"cannot write to {run.path}: {error.strerror}") from error
    return found, campaign.interrupt
