"""Weights from files: plain state dicts, whole pickled models (read without running their code), safetensors."""

from __future__ import annotations

import importlib
import pickle
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

from hwprof.errors import HwprofError, UsageError
from hwprof.workload import unpickle
from hwprof.workload.tensors import first_line

StateDict = dict[str, torch.Tensor]

_STATE_KEYS = ("ema", "model", "model_state_dict", "state_dict")
"""Where training scripts put the weights, the best first."""

_COUNTERS = "num_batches_tracked"
"""A buffer of batch normalisation that inference does not use and old checkpoints lack."""

_SHOWN = 3


def load_weights(model: nn.Module, path: Path, fuse: Callable[[], None] | None = None) -> bool:
    """Copies a checkpoint's weights into a model that is not fused; every name and shape must fit.

    A checkpoint saved after fusing is loaded into the fused model: ``fuse`` is called first, and the answer is true. A
    training checkpoint of YOLOv7 has its implicit layers folded into the head's convolutions. Half precision becomes
    single. Raises ``HwprofError`` with one line.
    """
    state = read_state(path)
    _fold_implicit(state)
    fused = fuse is not None and _is_fused(state) and not _is_fused(model.state_dict())
    if fuse is not None and fused:
        fuse()
    own = model.state_dict()
    missing = [key for key in own if key not in state and not key.endswith(_COUNTERS)]
    unexpected = [key for key in state if key not in own and not key.endswith(_COUNTERS)]
    misfit = [key for key in own if key in state and own[key].shape != state[key].shape]
    if missing or unexpected or misfit:
        problems = [
            f"{len(keys)} {what} ({', '.join(keys[:_SHOWN])}{', …' if len(keys) > _SHOWN else ''})"
            for what, keys in (("missing", missing), ("unexpected", unexpected), ("of another shape", misfit))
            if keys
        ]
        raise HwprofError(
            f"the weights in {path} do not fit the model: {'; '.join(problems)}", "--model must name their architecture"
        )
    model.load_state_dict({key: value for key, value in state.items() if key in own}, strict=False)
    return fused


def read_state(path: Path) -> StateDict:
    """A checkpoint's tensors by name, floating-point ones in single precision."""
    if not path.is_file():
        raise UsageError(f"there is no weights file {path}")
    content = _read_safetensors(path) if path.suffix == ".safetensors" else _read_pickle(path)
    state = _find_state(content)
    if not state:
        raise HwprofError(f"{path} holds no weights that could be found in it")
    if all(key.startswith("module.") for key in state):  # saved from inside DataParallel
        state = {key.removeprefix("module."): value for key, value in state.items()}
    return {key: value.float() if value.is_floating_point() else value for key, value in state.items()}


def _read_safetensors(path: Path) -> Any:
    try:
        safetensors = importlib.import_module("safetensors.torch")
    except ImportError as error:
        raise HwprofError(f"reading {path} needs safetensors", "pip install safetensors") from error
    try:
        return safetensors.load_file(path)
    except Exception as error:  # the library's own error types, or the file system's
        raise HwprofError(f"cannot read {path}: {first_line(error)}") from error


def _read_pickle(path: Path) -> Any:
    """What ``torch.save`` wrote, without running code from the file: tensors only, or else inert placeholders."""
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError:  # it names classes
        pass
    except (RuntimeError, EOFError, OSError, ValueError) as error:
        raise HwprofError(f"cannot read {path} as a checkpoint: {first_line(error)}") from error
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that the classes' source changed: they are not used
            return torch.load(path, map_location="cpu", weights_only=False, pickle_module=unpickle)
    except Exception as error:  # a damaged or malicious pickle can raise anything
        raise HwprofError(f"cannot read {path} as a checkpoint: {first_line(error)}") from error


def _find_state(content: Any) -> StateDict:
    """The state dict in what a file held; empty where there is none."""
    if isinstance(content, unpickle.Placeholder):
        return unpickle.state_of(content)
    if not isinstance(content, dict):
        return {}
    tensors = {str(key): value for key, value in content.items() if isinstance(value, torch.Tensor)}
    if tensors and len(tensors) == len(content):
        return tensors
    for key in _STATE_KEYS:
        if found := _find_state(content.get(key)):
            return found
    return {}


def _is_fused(state: StateDict) -> bool:
    """Whether no batch normalisation is left in it."""
    return not any(key.endswith("running_var") for key in state)


def _fold_implicit(state: StateDict) -> None:
    """Folds YOLOv7's implicit knowledge (added before, multiplied after a head's 1x1 convolution) into it, in place.

    m·(W·(x + a) + b) = (m·W)·x + m·(W·a + b), for each output channel.
    """
    for key in [key for key in state if ".ia." in key and key.endswith(".implicit")]:
        stem, level = key.removesuffix(".implicit").split(".ia.")
        weight, bias = f"{stem}.m.{level}.weight", f"{stem}.m.{level}.bias"
        factor = f"{stem}.im.{level}.implicit"
        if not {weight, bias, factor} <= state.keys():
            continue
        added, multiplied = state.pop(key).flatten(), state.pop(factor).flatten()
        state[bias] = multiplied * (state[bias] + state[weight].flatten(1) @ added)
        state[weight] = multiplied.view(-1, 1, 1, 1) * state[weight]
