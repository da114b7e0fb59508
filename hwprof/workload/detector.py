"""Building a registered model: its modules, its strides and class names, and how its output becomes boxes."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn.modules import activation
from torch.overrides import TorchFunctionMode

from hwprof.workload.libraries import require_ultralytics, ultralytics_folder
from hwprof.workload.model_registry import ModelEntry, read_yaml


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


def build_detector(entry: ModelEntry, seed: int, *, draw: bool = True) -> Detector:
    """The model in evaluation mode, not fused, with weights drawn from the seed; or else, where all of them are loaded
    afterwards anyway, with what is quickest."""
    tasks = require_ultralytics("nn.tasks")
    torch.manual_seed(seed)
    with contextlib.nullcontext() if draw else _Undrawn():
        return _build(entry, tasks)


def _build(entry: ModelEntry, tasks: Any) -> Detector:
    if entry.origin == "hwprof":
        from hwprof.workload.architecture import build_architecture

        module: Any = build_architecture(entry.file, entry.scale)
        stride, end_to_end = max(module.model[-1].strides), False
    else:
        layout = {**read_yaml(entry.file), "scale": entry.scale or "", "yaml_file": entry.file.name}
        module = tasks.DetectionModel(layout, verbose=False)
        stride, end_to_end = int(module.stride.max()), bool(module.end2end)
    separate_activations(module)
    module.eval().requires_grad_(False)
    return Detector(module, stride, class_names(module.model[-1].nc), entry.origin == "hwprof", end_to_end)


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
