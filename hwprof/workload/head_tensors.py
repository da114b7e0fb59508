"""What the tensors of a head say: the task of a checkpoint's model, its classes, its keypoints."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import torch

from hwprof.errors import UsageError
from hwprof.workload.model_registry import ModelEntry, read_yaml
from hwprof.workload.tensors import StateDict

ANCHOR_HEAD: Final = re.compile(r"model\.(\d{1,6})\.m\.(0)\.weight")
ANCHOR_FREE_HEAD: Final = re.compile(r"model\.(\d{1,6})\.(?:one2one_)?cv3\.0\.(\d{1,6})\.weight")
CLASSIFIER: Final = re.compile(r"model\.(\d{1,6})\.(linear)\.weight")
"""The layers of a head that give the classes, the last one last."""

ONE_TO_ONE: Final = re.compile(r"model\.(\d{1,6})\.one2one_cv2\.0\.(\d{1,6})\.weight")
ONE_TO_MANY: Final = re.compile(r"model\.(\d{1,6})\.cv2\.0\.(\d{1,6})\.weight")
"""The convolutions of a head that give the boxes: of the branch that needs no NMS, and of the other."""

MASKS: Final = re.compile(r"model\.(\d{1,6})\.(proto)\.cv1\.conv\.weight")
FURTHER: Final = re.compile(r"model\.(\d{1,6})\.(?:one2one_)?cv4(?:\.0\.(\d{1,6})|_kpts\.0)\.weight")
"""The convolutions of a head that give what it has beside box and class: coefficients of masks, keypoints, an angle."""

MOST_CLASSES: Final = 10_000
MOST_KEYPOINTS: Final = 1_000

COORDINATES: Final = (3, 2)
"""Of a keypoint: x, y and whether it is seen; or without that."""


class HeadForm(NamedTuple):
    """What of a head may differ between models of one layout; None: as the layout has it."""

    classes: int | None = None
    keypoints: tuple[int, int] | None = None  # how many, and the coordinates of each
    end_to_end: bool = False  # fusing has left the branch alone that needs no NMS


def form_in(state: StateDict, described: Mapping[str, Any], entry: ModelEntry) -> HeadForm:
    """Of a checkpoint's model. Raises ``UsageError`` for more classes or keypoints than any has."""
    keypoints = keypoints_in(state, described) if entry.task.name == "pose" else None
    alone = _last(state, ONE_TO_ONE) is not None and _last(state, ONE_TO_MANY) is None
    return HeadForm(classes_in(state, entry), keypoints, alone)


def classes_in(state: StateDict, entry: ModelEntry) -> int | None:
    """How many classes a checkpoint's model tells apart, by the last layer of its head; None: it has none. Raises
    ``UsageError`` for more than any has."""
    own = entry.origin == "hwprof"
    pattern = ANCHOR_HEAD if own else CLASSIFIER if entry.task.name == "classify" else ANCHOR_FREE_HEAD
    last = _last(state, pattern)
    if last is None:
        return None
    anchors = len(read_yaml(entry.file)["anchors"][0]) // 2 if own else 1
    classes = last.shape[0] // anchors - (5 if own else 0)
    if not 0 < classes <= MOST_CLASSES:
        raise UsageError(f"the checkpoint's head is of {classes:,} classes", "another --weights")
    return classes


def keypoints_in(state: StateDict, described: Mapping[str, Any]) -> tuple[int, int] | None:
    """How many keypoints a checkpoint's model finds, and the coordinates of each; ``described``: what its layout file
    said, which is believed where it fits. None: it has none. Raises ``UsageError`` for more than any has."""
    last = _last(state, FURTHER)
    if last is None:
        return None
    values = last.shape[0]
    if not 0 < values <= MOST_KEYPOINTS * max(COORDINATES):
        raise UsageError(f"the checkpoint's head gives {values:,} coordinates of keypoints", "another --weights")
    possible = [(values // each, each) for each in COORDINATES if values % each == 0]
    said = described.get("kpt_shape")
    return next((shape for shape in possible if said in (shape, list(shape))), possible[0] if possible else None)


def task_in(state: StateDict) -> str:
    """The name of the task that a checkpoint's model is for."""
    if _last(state, CLASSIFIER) is not None:
        return "classify"
    further = _last(state, FURTHER)
    if further is None:
        return "detect"
    if _last(state, MASKS) is not None:
        return "segment"
    return "obb" if further.shape[0] == 1 else "pose"  # an angle alone


def _last(state: StateDict, pattern: re.Pattern[str]) -> torch.Tensor | None:
    """The weights of the last layer of that name."""
    return max(_matching(state, pattern), key=lambda found: found[0], default=((), None))[1]


def _matching(state: StateDict, pattern: re.Pattern[str]) -> Iterator[tuple[tuple[int, ...], torch.Tensor]]:
    """With the numbers in the name."""
    for key, value in state.items():
        found = pattern.fullmatch(key)
        if found is not None and not value.is_nested and value.ndim in (2, 4):
            yield tuple(int(group) for group in found.groups() if group is not None and group.isdigit()), value
