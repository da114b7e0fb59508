"""A model as ONNX, made for one kind of call, and what it is made of."""

from __future__ import annotations

import ast
import logging
import shutil
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import torch
from torch import nn

from hwprof.errors import FullDiskError, HwprofError, first_line, is_full_disk, with_cause
from hwprof.workload.layer_hooks import layers
from hwprof.workload.runtimes.flat_call import INNER, FlatCall, Leaves, Structure, tensors_of
from hwprof.workload.runtimes.matching import optimised
from hwprof.workload.runtimes.operators import Graph, Operator, Scopes
from hwprof.workload.runtimes.temporary import PREFIX, place
from hwprof.workload.tensors import size_bytes

SCOPES: Final = "pkg.torch.onnx.name_scopes"
"""Where the exporter says in which modules an operator is: a list of Python's, with the operator itself at its end."""

MOST_BYTES: Final = 1 << 30
"""Of weights in the model's own file: protobuf takes two gigabytes, and they may be there twice."""

LEAST_BYTES: Final = 1 << 20
"""Of a disk, for whatever else is written: with less it counts as full."""

MORE_ROOM: Final = "free some space, or choose another place with --output"


class Exported(NamedTuple):
    """``file`` lies in a folder that nobody else may look into, with whatever it needs."""

    file: Path
    graph: Graph
    structure: Structure


@contextmanager
def exported(model: nn.Module, call: Leaves) -> Iterator[Exported]:
    """The files are gone afterwards. Raises ``HwprofError`` where it cannot be exported, with the exporter's reason."""
    leaves, spec = call
    given: list[Structure] = []
    flat = FlatCall(model, leaves, spec, given.append)
    weights_bytes = sum(map(size_bytes, [*model.parameters(), *model.buffers()]))
    with tempfile.TemporaryDirectory(prefix=PREFIX, dir=place()) as folder, _told_of_room(Path(folder), weights_bytes):
        program = _program(flat, tuple(tensors_of(leaves)))
        if not given:  # what it makes all the same says nothing of how that is nested
            raise _cannot("its code decides by values what it gives, at each call anew")
        structure = given[-1]
        if not structure.tensors:
            raise HwprofError("the model gives no tensor: ONNX has nothing to compute")
        file = Path(folder) / "model.onnx"
        graph = _graph(program.model.graph, _paths(model))
        try:
            program.optimize()
            program.save(str(file), external_data=weights_bytes > MOST_BYTES)
        except Exception as error:
            raise _refused(error) from error
        yield Exported(file, optimised(graph, _operators(program.model.graph)), structure)


@contextmanager
def _told_of_room(folder: Path, weights_bytes: int) -> Iterator[None]:
    """What exports or loads a model says of a full disk that something could not be serialised: where there is no room
    for the weights again, as what is optimised has them, that is said with it."""
    try:
        yield
    except FullDiskError:
        raise
    except HwprofError as error:
        free_bytes = shutil.disk_usage(folder).free
        if free_bytes >= max(weights_bytes, LEAST_BYTES):
            raise
        room = f"{free_bytes / 1e6:.1f} MB are free in {folder.parent}, and its weights have {weights_bytes / 1e6:.1f}"
        raise HwprofError(f"{error.message}; {room}", MORE_ROOM) from error


def _program(flat: FlatCall, tensors: Sequence[torch.Tensor]) -> Any:
    """What the exporter makes; in silence: it tells of attributes that it gives their values back."""
    logger = logging.getLogger("torch.onnx")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(action="ignore"):
            return torch.onnx.export(flat, tuple(tensors), dynamo=True, verbose=False, optimize=False)
    except Exception as error:
        raise _refused(error) from error
    finally:
        logger.setLevel(before)


def _refused(error: Exception) -> HwprofError:
    """What is said around it is of many lines, and the same of every model."""
    inner = error
    while isinstance(inner.__cause__, Exception):
        inner = inner.__cause__
    if is_full_disk(inner):
        return FullDiskError(place() or tempfile.gettempdir())
    return _cannot(with_cause(first_line(inner), inner))


def _cannot(reason: str) -> HwprofError:
    return HwprofError(
        f"the model cannot be exported to ONNX: {reason}",
        "torch.cond in place of what its code decides by values (pytorch.org: torch.export); or --variant compile",
    )


def _paths(model: nn.Module) -> dict[str, str]:
    """Of the modules that are layers, by each of their names."""
    known = {module: path for path, module in layers("", model)}
    named = model.named_modules(remove_duplicate=False)
    return {name: known[module] for name, module in named if name and module in known}


def _graph(graph: Any, paths: Mapping[str, str]) -> Graph:
    return Graph(_operators(graph), frozenset(value.name for value in graph.inputs), paths)


def _operators(graph: Any) -> list[Operator]:
    """Of a graph as onnxscript has it."""
    return [
        Operator(
            node.name,
            node.op_type,
            tuple(value.name for value in node.inputs if value is not None),
            tuple(value.name for value in node.outputs),
            _scopes(node.metadata_props.get(SCOPES)),
        )
        for node in graph
    ]


def _scopes(text: str | None) -> Scopes | None:
    """Without what is around the model, and the operator itself."""
    if text is None:
        return None
    try:
        names = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):  # no list: a name may have quotes in it
        return None
    inside = f"{INNER}."
    return tuple(str(name).removeprefix(inside) for name in names[:-1] if str(name).startswith(inside))
