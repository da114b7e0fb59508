"""The static layer table: what every module of the model is, and what one iteration asks of it by arithmetic alone."""

from __future__ import annotations

import contextlib
import math
import os
import re
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import polars as pl
import torch
from torch import nn

from hwprof import processes
from hwprof.run.schema import TABLES, conform, empty
from hwprof.workload.flop_meter import FlopMeter, Flops
from hwprof.workload.layer_geometry import convolution, pooling
from hwprof.workload.layer_hooks import is_leaf, layers, room_on_the_stack, type_name
from hwprof.workload.module_call import Forward, ModuleCall, is_compiled
from hwprof.workload.operator_flops import CountedFlops
from hwprof.workload.protocol import Call, Workload
from hwprof.workload.shape_flops import ShapeFlops
from hwprof.workload.tensors import shapes_text, size_bytes, tensors_in
from hwprof.workload.weights import WeightReader

OF_A_CALL: Final = (
    "macs",
    "own_macs",
    "bytes",
    "calls",
    "input_shapes",
    "output_shapes",
    "more_shapes",
    "product_type",
)
"""The columns of ``layers`` that only a call of the model tells."""


def layer_tables(workload: Workload, *, first_only: bool = False) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The tables ``layers`` and ``layer_calls`` of one iteration, or of its first forward; each distinct forward runs
    once, without arithmetic where shapes say everything.

    MACs are half of the FLOPs of products (``operator_flops``: convolutions, matrix products, attention, recurrent
    layers), nothing element-wise: 0 of a module without products, null of one with others. Bytes are those of inputs,
    outputs and weights (``weights``) in their own element sizes, each once a call; null where weights cannot be read.
    What a module does in a call of itself is in the MACs and bytes of the call around it.
    """
    most = 1 if first_only else None
    forwards = workload.forwards()[:most]
    if workload.shapes_suffice:
        # An operator that writes in place cannot take zeros without memory; whatever the error: then with arithmetic.
        with contextlib.suppress(Exception), FlopMeter(ShapeFlops) as flops:
            return _tables(workload.modules, forwards, flops)
    with torch.inference_mode(), FlopMeter(CountedFlops) as flops:  # as measured: it may be stateful
        return _tables(workload.modules, forwards, flops)


def tables_without_call(workload: Workload) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The same tables where the model cannot be called for them: its modules in their own order, with nulls for all
    that a call would tell, and no calls."""
    rows = _table(_all_facts(workload.modules), WeightReader())
    return rows.with_columns(pl.lit(None, rows.schema[name]).alias(name) for name in OF_A_CALL), empty("layer_calls")


def _tables(
    modules: Mapping[str, nn.Module], forwards: list[Call], flops: FlopMeter
) -> tuple[pl.DataFrame, pl.DataFrame]:
    facts, reader = _all_facts(modules), WeightReader()
    original = os.getpid()
    recorder = _CallRecorder(facts, flops, reader)
    try:
        with torch.no_grad(), room_on_the_stack():
            for call, positions in _distinct(forwards):
                recorder.begin_forward(positions)
                call.run()
                processes.end_copy(original)
    finally:
        recorder.remove()
    called = sorted((fact for fact in facts if fact.calls), key=lambda fact: fact.first_call)
    ordered = called + [fact for fact in facts if not fact.calls]
    return _table(ordered, reader), conform("layer_calls", recorder.calls())


def _all_facts(modules: Mapping[str, nn.Module]) -> list[_Facts]:
    found = []
    for prefix, root in modules.items():
        layout = _layout(prefix, root)
        number = re.compile(rf"{re.escape(layout)}(\d+)(?:\.|$)") if layout is not None else None
        for path, module in layers(prefix, root):
            index = number.match(path) if number is not None else None
            found.append(_Facts(path, module, int(index[1]) if index else None))
    return found


def _layout(prefix: str, module: nn.Module) -> str | None:
    """Before which paths' numbers: the model is one list of modules, or holds nothing but such a model (``model.``)."""
    children = [] if is_leaf(module) else list(module.named_children())
    if children and all(name.isdecimal() for name, _ in children):
        return prefix
    return _layout(f"{prefix}{children[0][0]}.", children[0][1]) if len(children) == 1 else None


def _table(facts: list[_Facts], reader: WeightReader) -> pl.DataFrame:
    return pl.DataFrame([fact.row(order, reader) for order, fact in enumerate(facts)], schema=TABLES["layers"])


@dataclass
class _Facts:
    """What is gathered on one module."""

    path: str
    module: nn.Module
    index: int | None  # in the model's layout
    first_call: int = -1
    calls: int = 0
    flops: int | None = 0
    own_flops: int | None = 0  # of no module below it
    bytes: int | None = 0
    types: set[str] = field(default_factory=set)  # of the numbers that are multiplied
    input_shapes: list[str] = field(default_factory=list)  # distinct, the first call's first
    output_shapes: str | None = None
    input: int | None = None  # which tensors the first call got

    @property
    def leaf(self) -> bool:
        return is_leaf(self.module)

    def row(self, order: int, reader: WeightReader) -> dict[str, Any]:
        weights = reader.weights(self.module)
        return {
            "order": order,
            "index": self.index,
            "path": self.path,
            "type": type_name(self.module),
            "leaf": self.leaf,
            "depth": self.path.count("."),
            "parameters": weights.number if weights is not None else None,
            "macs": _macs(self.flops),
            "own_macs": _macs(self.own_flops),
            "bytes": self.bytes if self.leaf else None,
            "calls": self.calls,
            "input_shapes": self.input_shapes[0] if self.input_shapes else None,
            "output_shapes": self.output_shapes,
            "more_shapes": max(0, len(self.input_shapes) - 1),
            "convolution": convolution(self.module),
            "pooling": pooling(self.module),
            "input": self.input,
            "product_type": ", ".join(sorted(self.types)) or None,
            "compiled": is_compiled(self.module),
        }


def _distinct(forwards: list[Call]) -> list[tuple[Call, list[int]]]:
    """Each forward with the positions at which it occurs: with the very same arguments it needs to run only once."""
    groups: dict[tuple[Any, ...], list[int]] = {}
    for position, (module, arguments, keywords) in enumerate(forwards):
        named = ((name, id(value)) for name, value in keywords.items())
        groups.setdefault((id(module), *map(id, arguments), *named), []).append(position)
    return [(forwards[positions[0]], positions) for positions in groups.values()]


class _Inputs:
    """Numbers for what modules are called with: the same tensors, unless they were written to meanwhile, have the same.
    Those that are gone may leave their place in memory to others, which are not the same."""

    def __init__(self) -> None:
        self._known: dict[tuple[tuple[int, int], ...], tuple[list[weakref.ref[torch.Tensor]], int]] = {}
        self._last = -1

    def number(self, tensors: list[torch.Tensor]) -> int | None:
        """None where there are no tensors."""
        if not tensors:
            return None
        key = tuple((id(tensor), 0 if tensor.is_inference() else tensor._version) for tensor in tensors)
        references, number = self._known.get(key, ([], None))
        if number is None or any(reference() is None for reference in references):
            self._last = number = self._last + 1
            self._known[key] = [weakref.ref(tensor) for tensor in tensors], number
        return number


class _CallRecorder:
    """Gathers the facts of every module while the model runs, in its ``forward``'s place: TorchScript has no hooks."""

    def __init__(self, facts: list[_Facts], flops: FlopMeter, reader: WeightReader) -> None:
        self._positions = [0]  # where the iteration makes the forward that runs now
        self._flops = flops
        self._reader = reader
        self._calls = 0
        self._inputs = _Inputs()
        self._rows: dict[int, list[dict[str, Any]]] = {}  # the calls of each forward, in order
        self._recorded_calls = [ModuleCall(fact.module) for fact in facts]
        for fact, call in zip(facts, self._recorded_calls, strict=True):
            call.place(self._recorded(fact, call))

    def begin_forward(self, positions: list[int]) -> None:
        """What runs next stands at these positions of the iteration."""
        self._positions = positions
        for position in positions:
            self._rows[position] = []

    def calls(self) -> pl.DataFrame:
        """The rows of ``layer_calls``, in order of execution."""
        rows = pl.DataFrame(
            [row for position in sorted(self._rows) for row in self._rows[position]],
            schema={name: dtype for name, dtype in TABLES["layer_calls"].items() if name != "call"},
        )
        return rows.with_columns(call=pl.int_range(pl.len()).over("path"))

    def remove(self) -> None:
        """The modules are as they were."""
        for call in self._recorded_calls:
            call.restore()

    def _recorded(self, fact: _Facts, module_call: ModuleCall) -> Forward:
        def recorded(*arguments: Any, **keywords: Any) -> Any:
            inputs = [*tensors_in(module_call.given(arguments)), *tensors_in(keywords)]
            call = self._begin(fact, inputs)
            self._flops.begin(fact)
            try:
                output = module_call.function(*arguments, **keywords)
            except BaseException:
                self._flops.abandon()
                call["bytes"] = None  # until now its inputs'
                raise
            self._end(fact, call, inputs, list(tensors_in(output)), *self._flops.end())
            return output

        return recorded

    def _begin(self, fact: _Facts, inputs: list[torch.Tensor]) -> dict[str, Any]:
        """The call's row, as far as it is known."""
        if not fact.calls:
            fact.first_call = self._calls
            fact.input = self._inputs.number(inputs)
        self._calls += 1
        fact.calls += len(self._positions)
        shapes = shapes_text(inputs)
        if shapes not in fact.input_shapes:
            fact.input_shapes.append(shapes)
        call: dict[str, Any] = {"path": fact.path, "input_shapes": shapes, "bytes": _bytes(inputs)}
        for position in self._positions:
            self._rows[position].append(call)
        return call

    def _end(
        self,
        fact: _Facts,
        call: dict[str, Any],
        inputs: list[torch.Tensor],
        outputs: list[torch.Tensor],
        done: Flops,
        own: Flops,
    ) -> None:
        rows = _rows_bytes(fact.module, inputs, outputs)
        size = self._size(fact, call["bytes"] + _bytes(outputs), rows, done) if fact.leaf else None
        times = len(self._positions)
        call |= {"output_shapes": shapes_text(outputs), "macs": _macs(done.known), "bytes": size}
        if not self._flops.is_within(fact):  # a call around this one has all of it
            fact.flops = _sum(fact.flops, done.known, times)
            fact.bytes = _sum(fact.bytes, size, times)
        fact.types.update(done.by_type)
        fact.own_flops = _sum(fact.own_flops, own.known, times)
        fact.output_shapes = fact.output_shapes or call["output_shapes"]

    def _size(self, fact: _Facts, moved: int, rows: float, done: Flops) -> int | None:
        """Of a leaf's call: inputs and outputs, and what it reads of the weights, ``rows`` at most."""
        if done.known != 0:
            self._reader.take_tensors(fact.module)
        weights = self._reader.weights(fact.module)
        if weights is None:
            return None
        return moved + round(min(weights.bytes, rows))


def _rows_bytes(module: nn.Module, inputs: list[torch.Tensor], outputs: list[torch.Tensor]) -> float:
    """Of a table that rows are taken out of, these rows: what comes out, or where they are added up in bags a row for
    each index, its first input's elements. Any other module reads all of its weights."""
    if isinstance(module, nn.Embedding):
        return _bytes(outputs)
    if isinstance(module, nn.EmbeddingBag) and inputs:
        return inputs[0].numel() * module.embedding_dim * module.weight.element_size()
    return math.inf


def _sum(before: int | None, of_a_call: int | None, times: int) -> int | None:
    return None if before is None or of_a_call is None else before + times * of_a_call


def _macs(flops: int | None) -> int | None:
    return None if flops is None else flops // 2


def _bytes(tensors: list[torch.Tensor]) -> int:
    return sum(map(size_bytes, tensors))
