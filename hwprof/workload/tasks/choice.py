"""Which task a model is for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from hwprof.workload.detector import Detector
from hwprof.workload.tasks.classification import Classification
from hwprof.workload.tasks.detection import Detection
from hwprof.workload.tasks.oriented_detection import OrientedDetection
from hwprof.workload.tasks.pose import Pose
from hwprof.workload.tasks.protocol import Task
from hwprof.workload.tasks.segmentation import Segmentation

TASKS: Final[Mapping[str, Callable[[Detector, int, float, float], Task]]] = {
    "detect": Detection,
    "segment": Segmentation,
    "pose": Pose,
    "obb": OrientedDetection,
    "classify": Classification,
}
"""By the names in ``heads.toml``."""


def make_task(detector: Detector, imgsz: int, conf: float, iou: float) -> Task:
    """The model's task: with images of that size in pixels, and with boxes above ``conf``, of which those go that
    overlap a better one by more than ``iou``."""
    return TASKS[detector.task](detector, imgsz, conf, iou)
