"""Weights from files: plain state dicts, whole pickled models (read without running their code), safetensors."""

from __future__ import annotations

import importlib
import pickle
import stat
import struct
import warnings
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from torch import nn

from hwprof.errors import HwprofError, UsageError, first_line
from hwprof.workload import training_forms, unpickle
from hwprof.workload.tensors import StateDict, in_single_precision
from hwprof.workload.tensors_only import scanned

_STATE_KEYS = ("ema", "model", "model_state_dict", "state_dict")
"""Where training scripts put the weights, the best first."""

_COUNTERS = "num_batches_tracked"
"""A buffer of batch normalisation that inference does not use and old checkpoints lack."""

_SHOWN = 3

ZIP = b"PK\x03\x04"
PICKLE = b"\x80"
"""How what ``torch.save`` writes begins: today, and until version 1.6."""

CHECKPOINTS = "a file that torch.save wrote (.pt, .pth, .ckpt), or .safetensors"
"""What --weights takes."""


def load_weights(model: nn.Module, path: Path, fuse: Callable[[], None] | None = None) -> bool:
    """Copies a checkpoint's weights into a model that is not fused; every name and shape must fit.

    A checkpoint saved after fusing is loaded into the fused model: ``fuse`` is called first, and the answer is true. Of
    a training checkpoint of YOLOv7 comes what is deployed (``training_forms``). Half precision becomes single. Raises
    ``UsageError`` for a file that is none or does not fit, ``HwprofError`` for one that cannot be read.
    """
    state = _stored(path)
    training_forms.deploy(state, model.state_dict())
    fused = fuse is not None and _is_fused(state) and not _is_fused(model.state_dict())
    if fuse is not None and fused:
        fuse()
    own = model.state_dict()
    missing = [key for key in own if key not in state and not key.endswith(_COUNTERS)]
    unexpected = [key for key in state if key not in own and not key.endswith(_COUNTERS)]
    unlike = [key for key in own if key in state and _kind(own[key]) != _kind(state[key])]
    alike = [key for key in own if key in state and key not in unlike]  # others may have no shape to ask for
    misfit = [key for key in alike if own[key].shape != state[key].shape]
    if missing or unexpected or misfit or unlike:
        problems = [
            f"{len(keys)} {what} ({', '.join(keys[:_SHOWN])}{', …' if len(keys) > _SHOWN else ''})"
            for what, keys in (
                ("missing", missing),
                ("unexpected", unexpected),
                ("of another shape", misfit),
                ("sparse, nested, complex or without data", unlike),
            )
            if keys
        ]
        raise UsageError(
            f"the weights in {path} do not fit the model: {'; '.join(problems)}", "--model must name their architecture"
        )
    try:
        model.load_state_dict(
            {key: in_single_precision(value) for key, value in state.items() if key in own}, strict=False
        )
    except (RuntimeError, TypeError, ValueError) as error:  # kinds of tensors that cannot be copied
        raise UsageError(f"the weights in {path} do not fit the model: {first_line(error)}") from error
    return fused


def read_state(path: Path) -> StateDict:
    """A checkpoint's tensors by name, floating-point ones in single precision."""
    return {key: in_single_precision(value) for key, value in _stored(path).items()}


def _stored(path: Path) -> StateDict:
    """The tensors as the file has them. A few bytes of it can describe a tensor that no memory holds, so nothing may be
    copied before its shape is known to be the model's."""
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError) as error:
        raise UsageError(f"there is no weights file {path}", "its path from this folder, or the whole one") from error
    except OSError as error:  # in a folder where nobody may look, or links that lead to each other
        raise HwprofError(f"cannot read {path}: {error.strerror}") from error
    if not stat.S_ISREG(mode):  # a folder, or a pipe that nobody may ever write to
        raise UsageError(f"{path} is not a regular file", CHECKPOINTS)
    try:
        content = _read_safetensors(path) if path.suffix == ".safetensors" else _read_pickle(path)
        state = _find_state(content)
    except HwprofError:
        raise
    except MemoryError as error:  # a few bytes can claim any length
        raise HwprofError(f"{path} holds, or claims to hold, more than fits into memory") from error
    except Exception as error:  # a file that is none, is damaged or malicious can raise anything
        raise UsageError(f"{path} is not a checkpoint that hwprof reads: {_why(error)}", CHECKPOINTS) from error
    if not state:
        raise UsageError(f"{path} holds no weights that could be found in it", CHECKPOINTS)
    if all(key.startswith("module.") for key in state):  # saved from inside DataParallel
        state = {key.removeprefix("module."): value for key, value in state.items()}
    return state


def _kind(value: torch.Tensor) -> tuple[object, ...]:
    """What must be the same for a value to be copied whole."""
    return value.is_nested, value.is_complex(), value.layout, value.is_meta


def _why(error: Exception) -> str:
    """The first line of what the library says; ``KeyError: 101`` where that alone says nothing."""
    said = first_line(error)
    plain = isinstance(error, (RuntimeError, OSError, pickle.UnpicklingError)) and not isinstance(error, RecursionError)
    return said if plain else f"{type(error).__name__}: {said}"


def _read_safetensors(path: Path) -> Any:
    try:
        safetensors = importlib.import_module("safetensors.torch")
    except ImportError as error:
        raise HwprofError(f"reading {path} needs safetensors", "pip install safetensors") from error
    return safetensors.load_file(path)


def _read_pickle(path: Path) -> Any:
    """What ``torch.save`` wrote, without running code from the file: tensors only, or else inert placeholders. torch
    itself would unpack an archive of its first version (tar), with whatever members it has, into a folder."""
    with path.open("rb") as file:
        head = file.read(len(ZIP))
    if not head.startswith((ZIP, PICKLE)):
        raise pickle.UnpicklingError("it begins neither as a zip archive nor as a pickle")
    if head.startswith(ZIP):
        _check_archive(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of old protocols, and that the classes' source changed: they are not used
        with suppress(pickle.UnpicklingError), scanned():  # it names classes
            return torch.load(path, map_location="cpu", weights_only=True)
        return torch.load(path, map_location="cpu", weights_only=False, pickle_module=unpickle)


def _check_archive(path: Path) -> None:
    """A few kilobytes of compressed members, or of members that lie in one another, unpack to what no memory holds;
    ``torch.save`` writes neither. Raises ``UnpicklingError``."""
    try:
        with zipfile.ZipFile(path) as archive:
            unpacked = sum(member.file_size for member in archive.infolist())
    except (zipfile.BadZipFile, ValueError, NotImplementedError, struct.error):
        return  # torch says what is wrong with it
    if unpacked > path.stat().st_size:
        raise pickle.UnpicklingError(f"its {unpacked:,} bytes are more than the file has: torch.save compresses none")


def _find_state(content: Any, seen: set[int] | None = None) -> StateDict:
    """The state dict in what a file held; empty where there is none. ``seen``: the dictionaries that were looked into,
    by id; a file may name each one many times."""
    seen = set() if seen is None else seen
    if id(content) in seen:
        return {}
    seen.add(id(content))
    if isinstance(content, unpickle.Placeholder):
        return unpickle.state_of(content)
    if not isinstance(content, dict):
        return {}
    tensors = {str(key): value for key, value in content.items() if isinstance(value, torch.Tensor)}
    if tensors and len(tensors) == len(content):
        return tensors
    for key in _STATE_KEYS:
        if found := _find_state(content.get(key), seen):
            return found
    return {}


def _is_fused(state: StateDict) -> bool:
    """Whether no batch normalisation is left in it."""
    return not any(key.endswith("running_var") for key in state)
