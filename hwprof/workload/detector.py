"""Building a registered model: its modules, its strides and class names, and how its output becomes boxes."""

from __future__ import annotations

import contextlib
import copy
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import nn
from torch.nn.modules import activation
from torch.overrides import TorchFunctionMode

from hwprof.errors import UsageError
from hwprof.workload.libraries import require_ultralytics, ultralytics_folder
from hwprof.workload.model_registry import ModelEntry, read_yaml
from hwprof.workload.tensors import StateDict

ANCHOR_HEAD: Final = re.compile(r"model\.(\d{1,6})\.m\.(0)\.weight")
ANCHOR_FREE_HEAD: Final = re.compile(r"model\.(\d{1,6})\.cv3\.0\.(\d{1,6})\.weight")
"""The convolutions of a head that give the classes, the last one last."""

MOST_CLASSES: Final = 10_000


@dataclass
class Detector:
    """A detection model and what the pipeline must know about it."""

    module: nn.Module
    stride: int  # input height and width are multiples of it
    names: dict[int, str]  # of the classes
    objectness: bool  # True: (B, N, 5 + classes); False: (B, 4 + classes, N), or (B, N, 6) where end_to_end
    end_to_end: bool  # the model's own head has picked the boxes: no NMS

    @property
    def head(self) -> Any:
        """The last module."""
        layers: Any = self.module.model
        return layers[-1]

    def fuse(self) -> None:
        """Folds batch normalisation into convolutions, as deployed models are."""
        fuse: Any = self.module.fuse
        if self.objectness:
            fuse()
        else:
            fuse(verbose=False)


def build_detector(entry: ModelEntry, seed: int, *, draw: bool = True, classes: int | None = None) -> Detector:
    """The model in evaluation mode, not fused, with weights drawn from the seed; or else, where all of them are loaded
    afterwards anyway, with what is quickest. ``classes``: how many; None: as many as its layout has."""
    tasks = require_ultralytics("nn.tasks")
    torch.manual_seed(seed)
    with contextlib.nullcontext() if draw else _Undrawn():
        return _build(entry, tasks, classes)


def classes_in(state: StateDict, entry: ModelEntry) -> int | None:
    """How many classes a checkpoint's model tells apart, by the last convolution of its head; None: it has none.
    Raises ``UsageError`` for more than any has."""
    own = entry.origin == "hwprof"
    heads = [
        (int(found[1]), int(found[2]), value)
        for key, value in state.items()
        if (found := (ANCHOR_HEAD if own else ANCHOR_FREE_HEAD).fullmatch(key))
        and not value.is_nested
        and value.ndim == 4
    ]
    if not heads:
        return None
    *_, last = max(heads, key=lambda head: head[:2])
    anchors = len(read_yaml(entry.file)["anchors"][0]) // 2 if own else 1
    classes = last.shape[0] // anchors - (5 if own else 0)
    if not 0 < classes <= MOST_CLASSES:
        raise UsageError(f"the checkpoint's head is of {classes:,} classes", "another --weights")
    return classes


def _build(entry: ModelEntry, tasks: Any, classes: int | None) -> Detector:
    if entry.origin == "hwprof":
        from hwprof.workload.architecture import build_architecture

        module: Any = build_architecture(entry.file, entry.scale, classes)
        stride, end_to_end = max(module.model[-1].strides), False
    elif entry.origin == "darknet":
        from hwprof.workload.darknet_model import build_darknet

        module = build_darknet(entry.file)
        stride, end_to_end = module.model[-1].deepest, False
    else:
        layout = {**read_yaml(entry.file), "scale": entry.scale or "", "yaml_file": entry.file.name}
        module = tasks.DetectionModel(layout, nc=classes, verbose=False)
        stride, end_to_end = int(module.stride.max()), bool(module.end2end)
    separate_activations(module)
    module.eval().requires_grad_(False)
    return Detector(module, stride, class_names(module.model[-1].nc), entry.origin != "ultralytics", end_to_end)


class _Undrawn(TorchFunctionMode):
    """Fills with zeros what ``torch.nn.init`` would draw."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        named = dict(kwargs or {})
        if getattr(func, "__module__", None) == nn.init.__name__:
            tensor: torch.Tensor = named["tensor"] if "tensor" in named else args[0]
            return tensor.detach().zero_()
        return func(*args, **named)


def separate_activations(model: nn.Module) -> None:
    """Gives each place its own instance of an activation that several places share, so that each has its own path.

    Only activations without parameters and buffers: there the copy is the same function.
    """
    seen: set[int] = set()
    for module in list(model.modules()):
        for name, child in module.named_children():
            if type(child).__module__ != activation.__name__ or child.state_dict():
                continue
            if id(child) in seen:
                child = copy.deepcopy(child)
                setattr(module, name, child)
            seen.add(id(child))


def class_names(count: int) -> dict[int, str]:
    """COCO's class names for a model of 80 classes, else the numbers."""
    names = {index: str(index) for index in range(count)}
    folder = ultralytics_folder()
    if count == 80 and folder is not None:
        with contextlib.suppress(OSError, KeyError):
            names.update(read_yaml(folder / "cfg" / "datasets" / "coco.yaml")["names"])
    return names
