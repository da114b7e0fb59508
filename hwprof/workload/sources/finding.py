"""What ``--source`` names."""

from __future__ import annotations

import re
from typing import Final

from hwprof.workload.sources.camera import NAMED, Camera
from hwprof.workload.sources.dataset import read_dataset
from hwprof.workload.sources.image_files import ImageFiles
from hwprof.workload.sources.image_paths import DATASETS, VIDEOS, find_images, home_of, is_there
from hwprof.workload.sources.kept_frames import KeptFrames
from hwprof.workload.sources.protocol import Source
from hwprof.workload.sources.video import Video
from hwprof.workload.spec import WorkloadSpec

SPLIT: Final = re.compile(r"(.+\.ya?ml):(\w{1,99})", re.IGNORECASE | re.DOTALL)
"""``coco128.yaml:train``."""


def find_source(spec: WorkloadSpec, kept: KeptFrames | None = None) -> Source:
    """By its form and its suffix; ``kept``: for the frames of a camera. Raises ``UsageError`` where there is no such
    thing, and ``HwprofError`` where it cannot be read."""
    source, every = spec.source, spec.all_images
    if source is None:
        return ImageFiles(find_images(None), spec.batch, all_images=every)
    if camera := NAMED.fullmatch(source):
        return Camera(int(camera[1]), spec.batch, all_frames=every, kept=kept)
    path, split = home_of(source), None
    if not is_there(path) and (named := SPLIT.fullmatch(source)):
        path, split = home_of(named[1]), named[2]
    kind = path.suffix.lower() if is_there(path) and not path.is_dir() else None
    if kind in DATASETS:
        dataset = read_dataset(path, split)
        return ImageFiles(dataset.images, spec.batch, all_images=every, class_names=dataset.class_names)
    if kind in VIDEOS:
        return Video(path, spec.batch, all_frames=every)
    return ImageFiles(find_images(source), spec.batch, all_images=every)
