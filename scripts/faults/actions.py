"""What a case calls where the command line would take too long to come to the same code."""

from __future__ import annotations

import time
from contextlib import nullcontext
from pathlib import Path


def weights(path: str) -> None:
    """Loads a checkpoint into a small model."""
    from torch import nn

    from hwprof.workload.checkpoints import load_weights

    load_weights(nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4)), Path(path))


def source(named: str) -> None:
    """Finds and decodes what ``--source`` names, all of it."""
    from hwprof.workload.sources.finding import find_source
    from hwprof.workload.spec import WorkloadSpec

    found = find_source(WorkloadSpec(model="yolov8n", source=named, all_images=True))
    for _ in found.few(lambda sizes: (len(sizes), 3, 64, 64)).read(lambda name: nullcontext()):
        pass


def execute(path: str) -> None:
    """A program; for tests of the campaign itself."""
    exec(compile(Path(path).read_text(encoding="utf-8"), path, "exec"), {})


def wait(_: str) -> None:
    """Longer than any case may; for tests of the campaign itself."""
    time.sleep(3600)
