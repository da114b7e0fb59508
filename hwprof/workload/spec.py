"""The workload as it is asked for; needs no torch, so that the supervisor can carry it."""

from __future__ import annotations

from typing import Final

import msgspec

FLOATS: Final = {
    "float32": 3.4028234663852886e38,
    "float64": 1.7976931348623157e308,
    "float16": 65504.0,
    "bfloat16": 3.3895313892515355e38,
}
"""Types that inputs can be drawn in, as torch names them, with the largest value of each."""

INTEGERS: Final = ("int64", "int32", "int16", "int8", "uint8", "bool")
"""The others of them."""


class InputSpec(msgspec.Struct, kw_only=True, frozen=True):
    """An input of a user's model, drawn from the seed: floats from a normal distribution, or uniformly from a range;
    integers uniformly from a range, which includes both ends."""

    shape: tuple[int, ...]
    name: str | None = None  # of forward's parameter; None: the next one by position
    dtype: str = "float32"
    range: tuple[float, float] | None = None  # None: of integers 0 and 1


class WorkloadSpec(msgspec.Struct, kw_only=True, frozen=True):
    """The workload as the command line asks for it; travels to the worker as JSON."""

    model: str  # registry name ("yolov7", "yolov8n") or "package.module:factory"
    weights: str | None = None
    source: str | None = None  # what --source names; None: the photographs in ultralytics' wheel
    inputs: tuple[InputSpec, ...] = ()  # user's models: instead of the factory's own
    imgsz: int | None = None  # None: what the published models of the task are trained with
    batch: int = 1
    threads: int | None = None  # None: torch's own default
    seed: int = 0
    conf: float = 0.25
    iou: float = 0.45
    fuse: bool = True
    all_images: bool = False  # of a large source, too
    forwards: int | None = None  # of an iteration: as many as another pass found enough; None: to be found
    variants: tuple[str, ...] = ()  # by name, as ``remedies.catalogue`` has them
    changes: tuple[str, ...] = ()  # what they change in the process: see ``changes.BEFORE`` and ``changes.AFTER``
