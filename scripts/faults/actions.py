"""What a case calls where the command line would take too long to come to the same code."""

from __future__ import annotations

import time
from pathlib import Path


def weights(path: str) -> None:
    """Loads a checkpoint into a small model."""
    from torch import nn

    from hwprof.workload.checkpoints import load_weights

    load_weights(nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4)), Path(path))


def pictures(source: str) -> None:
    """Finds and decodes what ``--source`` names."""
    from hwprof.workload.images import read_image
    from hwprof.workload.sources.image_paths import find_images

    for path in find_images(source):
        read_image(path)


def execute(path: str) -> None:
    """A program; for tests of the campaign itself."""
    exec(compile(Path(path).read_text(encoding="utf-8"), path, "exec"), {})


def wait(_: str) -> None:
    """Longer than any case may; for tests of the campaign itself."""
    time.sleep(3600)
