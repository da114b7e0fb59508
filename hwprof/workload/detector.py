"""Building a registered model: its modules, its strides and class names, and what its output is."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import torch
from torch import nn
from torch.nn.modules import activation
from torch.overrides import TorchFunctionMode

from hwprof.workload.libraries import require_ultralytics, ultralytics_folder
from hwprof.workload.model_registry import ModelEntry, read_yaml

LEAST_STRIDE: Final = 32
"""Of ultralytics' models, some of which say none: as its own predictor takes it."""


@dataclass
class Detector:
    """A model that finds things in images, and what the pipeline must know about it."""

    module: nn.Module
    stride: int  # input height and width are multiples of it
    names: dict[int, str]  # of the classes
    objectness: bool  # True: (B, N, 5 + classes); False: (B, 4 + classes, N), or (B, N, 6) where end_to_end
    end_to_end: bool  # the model's own head has picked the boxes: no NMS
    task: str = "detect"

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


def build_detector(
    entry: ModelEntry,
    seed: int,
    *,
    draw: bool = True,
    classes: int | None = None,
    keypoints: tuple[int, int] | None = None,
    end_to_end: bool = False,
) -> Detector:
    """The model in evaluation mode, not fused, with weights drawn from the seed; or else, where all of them are loaded
    afterwards anyway, with what is quickest. ``classes``: how many; None: as many as the published model has.
    ``keypoints``: how many, and the coordinates of each; None: as its layout has them.
    ``end_to_end``: of a head of two branches the one is used that needs no NMS; else as ultralytics builds it."""
    require_ultralytics("nn.tasks")
    torch.manual_seed(seed)
    with contextlib.nullcontext() if draw else _Undrawn():
        return _build(entry, classes, keypoints, end_to_end=end_to_end)


def _build(entry: ModelEntry, classes: int | None, keypoints: tuple[int, int] | None, *, end_to_end: bool) -> Detector:
    if entry.origin == "hwprof":
        from hwprof.workload.architecture import build_architecture

        module: Any = build_architecture(entry.file, entry.scale, classes)
        stride, number = max(module.model[-1].strides), module.model[-1].nc
    elif entry.origin == "darknet":
        from hwprof.workload.darknet_model import build_darknet

        module = build_darknet(entry.file)
        stride, number = module.model[-1].deepest, module.model[-1].nc
    else:
        module = _build_ultralytics(entry, classes, keypoints)
        if end_to_end:
            module.end2end = True
        stride, number = max(int(module.stride.max()), LEAST_STRIDE), len(module.names)
        end_to_end = bool(getattr(module, "end2end", False))
    separate_activations(module)
    module.eval().requires_grad_(False)
    names = class_names(number, entry.task.dataset)
    return Detector(module, stride, names, entry.origin != "ultralytics", end_to_end, entry.task.name)


def _build_ultralytics(entry: ModelEntry, classes: int | None, keypoints: tuple[int, int] | None) -> Any:
    tasks = require_ultralytics("nn.tasks")
    layout = {**read_yaml(entry.file), "scale": entry.scale or "", "yaml_file": entry.file.name}
    if keypoints is not None:
        layout["kpt_shape"] = list(keypoints)
    number = classes or len(dataset_classes(entry.task.dataset)) or None
    return getattr(tasks, entry.task.model)(layout, nc=number, verbose=False)


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


def class_names(count: int, dataset: str) -> dict[int, str]:
    """Those of a dataset of ultralytics' for a model of as many classes, else the numbers."""
    names = dataset_classes(dataset)
    return dict(names) if len(names) == count else {index: str(index) for index in range(count)}


@cache
def dataset_classes(dataset: str) -> Mapping[int, str]:
    """The classes of a dataset that ultralytics knows, by the name of its file; empty where it does not."""
    folder = ultralytics_folder()
    if folder is not None:
        with contextlib.suppress(OSError, KeyError):
            return dict(read_yaml(folder / "cfg" / "datasets" / dataset)["names"])
    return {}
