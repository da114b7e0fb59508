"""Weights from files: plain state dicts, whole pickled models (read without running their code), safetensors."""

from __future__ import annotations

import importlib
import pickle
import stat
import struct
import warnings
import zipfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol

import torch
from torch import nn

from hwprof.errors import HwprofError, UsageError, first_line
from hwprof.printable import printable
from hwprof.workload import darknet_weights, training_forms, unpickle
from hwprof.workload.state_differences import differences
from hwprof.workload.tensors import StateDict, in_single_precision
from hwprof.workload.tensors_only import scanned

_STATE_KEYS = ("ema", "model", "model_state_dict", "state_dict")
"""Where training scripts put the weights, the best first."""

LONGEST_NAME = 200
"""Of a class."""

ZIP = b"PK\x03\x04"
PICKLE = b"\x80"
"""How what ``torch.save`` writes begins: today, and until version 1.6."""

CHECKPOINTS = "a file that torch.save wrote (.pt, .pth, .ckpt), .safetensors, or Darknet's .weights"
"""What --weights takes."""


WHOLE_COPY: Final = "another copy of it: to fetch or to save this one was interrupted"

ENDS_EARLY: Final = ("unexpected EOF", "file not fully covered")
"""What torch says of its old format, and safetensors."""


class Weights(Protocol):
    """What a file of weights holds, of whatever kind."""

    @property
    def state(self) -> StateDict:
        """Its tensors by name, as far as it names them."""
        ...

    @property
    def names(self) -> Mapping[int, str]:
        """The classes', where it says them."""
        ...

    @property
    def layout(self) -> str:
        """The name of the layout file, where it says it."""
        ...

    @property
    def described(self) -> Mapping[str, Any]:
        """What is in that file, where it says it."""
        ...

    def load_into(self, model: nn.Module, fuse: Callable[[], None] | None = None) -> bool:
        """As ``Checkpoint`` does it."""
        ...


@dataclass(frozen=True)
class Checkpoint:
    """What a file of weights holds: tensors as it has them, and where it says them the classes' names, and of which
    layout file (``yolov5s.yaml``) the model was made."""

    path: Path
    state: StateDict
    names: Mapping[int, str]
    layout: str = ""
    described: Mapping[str, Any] = field(default_factory=dict)  # what that file said, where the model keeps it

    def load_into(self, model: nn.Module, fuse: Callable[[], None] | None = None) -> bool:
        """Copies the weights into a model that is not fused; every name and shape must fit.

        A checkpoint saved after fusing is loaded into the fused model: ``fuse`` is called first, and the answer is
        true. Of a training checkpoint of YOLOv7 comes what is deployed (``training_forms``). Half precision becomes
        single. Raises ``UsageError`` where it does not fit.
        """
        state = dict(self.state)
        training_forms.deploy(state, model.state_dict())
        fused = fuse is not None and _is_fused(state) and not _is_fused(model.state_dict())
        if fuse is not None and fused:
            fuse()
        own = model.state_dict()
        differing = str(differences(state, own))
        if differing:
            text = f"the weights in {self.path} do not fit the model: {differing}"
            raise UsageError(text, "--model must name their architecture")
        fitting = {key: in_single_precision(value) for key, value in state.items() if key in own}
        try:
            model.load_state_dict(fitting, strict=False)
        except (RuntimeError, TypeError, ValueError) as error:  # kinds of tensors that cannot be copied
            raise UsageError(f"the weights in {self.path} do not fit the model: {first_line(error)}") from error
        return fused


def load_weights(model: nn.Module, path: Path) -> None:
    """Copies a checkpoint's weights into a model. Raises as ``read_checkpoint`` and ``Checkpoint.load_into``."""
    read_checkpoint(path).load_into(model)


def read_checkpoint(path: Path) -> Weights:
    """Raises ``UsageError`` for a file that is none, ``HwprofError`` for one that cannot be read.

    A few bytes can describe a tensor that no memory holds, so nothing may be copied before its shape is known to be the
    model's.
    """
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError) as error:
        raise UsageError(f"there is no weights file {path}", "its path from this folder, or the whole one") from error
    except OSError as error:  # in a folder where nobody may look, or links that lead to each other
        raise HwprofError(f"cannot read {path}: {error.strerror}") from error
    if not stat.S_ISREG(mode):  # a folder, or a pipe that nobody may ever write to
        raise UsageError(f"{path} is not a regular file", CHECKPOINTS)
    if path.suffix == darknet_weights.SUFFIX:
        return darknet_weights.DarknetWeights(path)
    try:
        content = _read_safetensors(path) if path.suffix == ".safetensors" else _read_pickle(path)
        state, names, (layout, described) = _find_state(content), _find_names(content), _find_layout(content)
    except HwprofError:
        raise
    except MemoryError as error:  # a few bytes can claim any length
        told = f"{path} holds, or claims to hold, more than fits into memory"
        raise HwprofError(told, "another copy of it, or a machine with more memory") from error
    except Exception as error:  # a file that is none, is damaged or malicious can raise anything
        if _is_cut_short(path, error):
            raise UsageError(f"{path} is cut short: the end of what was saved is missing", WHOLE_COPY) from error
        raise UsageError(f"{path} is not a checkpoint that hwprof reads: {_why(error)}", CHECKPOINTS) from error
    if not state:
        raise UsageError(f"{path} holds no weights that could be found in it", CHECKPOINTS)
    if all(key.startswith("module.") for key in state):  # saved from inside DataParallel
        state = {key.removeprefix("module."): value for key, value in state.items()}
    return Checkpoint(path, state, names, layout, described)


def _is_cut_short(path: Path, error: Exception) -> bool:
    """Whether the file ends too early. An archive has its table of contents at its end; of the others the library says
    so, each in its own way."""
    said = str(error)
    if "PytorchStreamReader" in said:
        return not zipfile.is_zipfile(path)
    past_the_end = type(error) is IndexError and said == "index out of range"  # of bytes: those of a list are named
    return past_the_end or isinstance(error, (EOFError, struct.error)) or any(words in said for words in ENDS_EARLY)


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


def _find_names(content: Any) -> dict[int, str]:
    """The classes' names: what training scripts keep beside the model, or in it."""
    if isinstance(content, unpickle.Placeholder):
        content = vars(content)
    if not isinstance(content, dict):
        return {}
    names = content.get("names")
    numbered = dict(enumerate(names)) if isinstance(names, list) else names
    if isinstance(numbered, dict) and all(_is_name(number, name) for number, name in numbered.items()):
        told = any(name != str(number) for number, name in numbered.items())  # else nobody has named them
        return {number: printable(name) for number, name in numbered.items()} if told else {}
    holders = (content.get(key) for key in _STATE_KEYS)
    return next((found for one in holders if isinstance(one, unpickle.Placeholder) and (found := _find_names(one))), {})


def _find_layout(content: Any) -> tuple[str, dict[str, Any]]:
    """The name of the layout file that a whole model keeps, and what it said."""
    holders = [content, *(content.get(key) for key in _STATE_KEYS)] if isinstance(content, dict) else [content]
    for holder in holders:
        if isinstance(holder, unpickle.Placeholder):
            own = vars(holder)
            kept = own.get("yaml")
            said: dict[str, Any] = kept if isinstance(kept, dict) else {}
            for name in (own.get("yaml_file"), said.get("yaml_file")):
                if type(name) is str and len(name) <= LONGEST_NAME:
                    return name, said
    return "", {}


def _is_name(number: Any, name: Any) -> bool:
    return type(number) is int and type(name) is str and len(name) <= LONGEST_NAME


def _is_fused(state: StateDict) -> bool:
    """Whether no batch normalisation is left in it."""
    return not any(key.endswith("running_var") for key in state)
