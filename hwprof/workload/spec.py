"""The workload as it is asked for; needs no torch, so that the supervisor can carry it."""

from __future__ import annotations

import msgspec


class WorkloadSpec(msgspec.Struct, kw_only=True, frozen=True):
    """The workload as the command line asks for it; travels to the worker as JSON."""

    model: str  # registry name ("yolov7", "yolov8n") or "package.module:factory"
    weights: str | None = None
    source: str | None = None  # file, folder or glob; None: the photographs in ultralytics' wheel
    input_shape: tuple[int, ...] | None = None  # user's models: 1,3,224,224
    imgsz: int = 640
    batch: int = 1
    threads: int | None = None  # None: torch's own default
    seed: int = 0
    conf: float = 0.25
    iou: float = 0.45
    fuse: bool = True
