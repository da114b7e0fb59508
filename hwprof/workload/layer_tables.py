"""The static layer table: what every module of the model is, and what one iteration asks of it by arithmetic alone."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import polars as pl
import torch
from torch import nn
from torch.utils import flop_counter

from hwprof.run.schema import TABLES, conform, empty
from hwprof.workload.layer_hooks import is_leaf, layers
from hwprof.workload.protocol import Workload
from hwprof.workload.shape_flops import ShapeFlops
from hwprof.workload.tensors import shapes_text, tensors_in
from hwprof.workload.uncounted import Uncounted

OF_A_CALL: Final = ("macs", "own_macs", "bytes", "calls", "input_shapes", "output_shapes", "more_shapes")
"""The columns of ``layers`` that only a call of the model tells."""


def layer_tables(workload: Workload, *, first_only: bool = False) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The tables ``layers`` and ``layer_calls`` of one iteration, or of its first forward; each distinct forward runs
    once, without arithmetic where shapes say everything.

    MACs are half of torch's FLOP counts, which know convolutions, matrix products and attention, and nothing
    element-wise: 0 of a module without products, null of one with products that torch does not count. Bytes are those
    of inputs, outputs and parameters in their own element sizes, each once a call.
    """
    most = 1 if first_only else None
    forwards = workload.forwards()[:most]
    if workload.shapes_suffice:
        # An operator that writes in place cannot take zeros without memory; whatever the error: then with arithmetic.
        with contextlib.suppress(Exception), ShapeFlops() as counted:
            return _tables(workload.modules, forwards, lambda: (counted.total, counted.uncounted))
    flops, counted_operators = _counting_flops()
    with torch.inference_mode(), flops, Uncounted(counted_operators) as unknown:  # as measured: it may be stateful
        return _tables(workload.modules, forwards, lambda: (flops.get_total_flops(), unknown.calls))


def tables_without_call(workload: Workload) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The same tables where the model cannot be called for them: its modules in their own order, with nulls for all
    that a call would tell, and no calls."""
    facts = [_Facts(path, module) for prefix, root in workload.modules.items() for path, module in layers(prefix, root)]
    rows = conform("layers", pl.DataFrame([fact.row(order) for order, fact in enumerate(facts)]))
    return rows.with_columns(pl.lit(None, rows.schema[name]).alias(name) for name in OF_A_CALL), empty("layer_calls")


def _tables(
    modules: Mapping[str, nn.Module],
    forwards: list[tuple[nn.Module, tuple[Any, ...]]],
    flops: Callable[[], tuple[int, int]],
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """``flops``: how many there were so far, and how many calls of operators that have others."""
    facts = [_Facts(path, module) for prefix, root in modules.items() for path, module in layers(prefix, root)]
    recorder = _CallRecorder(facts, flops)
    try:
        with torch.no_grad():
            for module, arguments, positions in _distinct(forwards):
                recorder.begin_forward(positions)
                module(*arguments)
    finally:
        recorder.remove()
    called = sorted((fact for fact in facts if fact.calls), key=lambda fact: fact.first_call)
    ordered = called + [fact for fact in facts if not fact.calls]
    rows = [fact.row(order) for order, fact in enumerate(ordered)]
    return conform("layers", pl.DataFrame(rows)), conform("layer_calls", recorder.calls())


@dataclass
class _Facts:
    """What is gathered on one module."""

    path: str
    module: nn.Module
    first_call: int = -1
    calls: int = 0
    flops: int | None = 0
    own_flops: int | None = 0  # of no module below it
    bytes: int = 0
    input_shapes: list[str] = field(default_factory=list)  # distinct, the first call's first
    output_shapes: str | None = None

    @property
    def leaf(self) -> bool:
        return is_leaf(self.module)

    def row(self, order: int) -> dict[str, Any]:
        index = re.search(r"(?:^|\.)(\d+)(?:\.|$)", self.path)
        return {
            "order": order,
            "index": int(index[1]) if index else None,
            "path": self.path,
            "type": type(self.module).__name__,
            "leaf": self.leaf,
            "depth": self.path.count("."),
            "parameters": sum(parameter.numel() for parameter in self.module.parameters()),
            "macs": _macs(self.flops),
            "own_macs": _macs(self.own_flops),
            "bytes": self.bytes if self.leaf else None,
            "calls": self.calls,
            "input_shapes": self.input_shapes[0] if self.input_shapes else None,
            "output_shapes": self.output_shapes,
            "more_shapes": max(0, len(self.input_shapes) - 1),
            "convolution": _convolution(self.module),
        }


def _convolution(module: nn.Module) -> str | None:
    """What its shapes and MACs leave open: ``k3x3 s2x2 p1x1 d1x1 g1``, and how it is padded where not with zeros. The
    padding is that before the first element: ``same`` may put more behind the last one."""
    if not isinstance(module, (nn.Conv1d, nn.Conv2d, nn.Conv3d)):
        return None
    before: tuple[int, ...] = tuple(0 for _ in module.kernel_size)
    if module.padding == "same":
        before = tuple(step * (size - 1) // 2 for step, size in zip(module.dilation, module.kernel_size, strict=True))
    elif not isinstance(module.padding, str):
        before = tuple(module.padding)
    sizes = {"k": module.kernel_size, "s": module.stride, "p": before, "d": module.dilation}
    words = [f"{letter}{'x'.join(map(str, size))}" for letter, size in sizes.items()]
    return " ".join([*words, f"g{module.groups}", *([module.padding_mode] if module.padding_mode != "zeros" else [])])


def _distinct(forwards: list[tuple[nn.Module, tuple[Any, ...]]]) -> list[tuple[nn.Module, tuple[Any, ...], list[int]]]:
    """Each forward with the positions at which it occurs: with the very same arguments it needs to run only once."""
    groups: dict[tuple[int, ...], list[int]] = {}
    for position, (module, arguments) in enumerate(forwards):
        groups.setdefault((id(module), *map(id, arguments)), []).append(position)
    return [(*forwards[positions[0]], positions) for positions in groups.values()]


class _CallRecorder:
    """Gathers the facts of every module while the model runs, in its ``forward``'s place: TorchScript has no hooks."""

    def __init__(self, facts: list[_Facts], flops: Callable[[], tuple[int, int]]) -> None:
        self._positions = [0]  # where the iteration makes the forward that runs now
        self._flops = flops
        self._calls = 0
        self._within: list[_Done] = []  # by the modules below each of the open calls
        self._rows: dict[int, list[dict[str, Any]]] = {}  # the calls of each forward, in order
        self._own = [(fact.module, fact.module.__dict__.get("forward")) for fact in facts]
        for fact in facts:
            fact.module.__dict__["forward"] = self._recorded(fact, fact.module.forward)

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
        for module, own in self._own:
            module.__dict__.pop("forward", None)
            if own is not None:
                module.__dict__["forward"] = own

    def _recorded(self, fact: _Facts, forward: Callable[..., Any]) -> Callable[..., Any]:
        def recorded(*arguments: Any, **keywords: Any) -> Any:
            call = self._begin(fact, [*tensors_in(arguments), *tensors_in(keywords)])
            before = _Done(*self._flops())
            self._within.append(_Done(0, 0))
            output = forward(*arguments, **keywords)
            done, below = _Done(*self._flops()) - before, self._within.pop()
            if self._within:
                self._within[-1] += done
            self._end(fact, call, list(tensors_in(output)), done, done - below)
            return output

        return recorded

    def _begin(self, fact: _Facts, inputs: list[torch.Tensor]) -> dict[str, Any]:
        """The call's row, as far as it is known."""
        if not fact.calls:
            fact.first_call = self._calls
        self._calls += 1
        fact.calls += len(self._positions)
        shapes = shapes_text(inputs)
        if shapes not in fact.input_shapes:
            fact.input_shapes.append(shapes)
        size = _bytes(inputs) + _bytes(list(fact.module.parameters(recurse=fact.leaf)))
        call: dict[str, Any] = {"path": fact.path, "input_shapes": shapes, "bytes": size}
        for position in self._positions:
            self._rows[position].append(call)
        return call

    def _end(self, fact: _Facts, call: dict[str, Any], outputs: list[torch.Tensor], done: _Done, own: _Done) -> None:
        size, times = call["bytes"] + _bytes(outputs), len(self._positions)
        call |= {
            "output_shapes": shapes_text(outputs),
            "macs": _macs(done.known),
            "bytes": size if fact.leaf else None,
        }
        fact.flops = _sum(fact.flops, done.known, times)
        fact.own_flops = _sum(fact.own_flops, own.known, times)
        fact.bytes += times * size
        fact.output_shapes = fact.output_shapes or call["output_shapes"]


@dataclass(frozen=True)
class _Done:
    """What a piece of a forward did."""

    flops: int
    uncounted: int  # calls of operators that have others

    def __add__(self, other: _Done) -> _Done:
        return _Done(self.flops + other.flops, self.uncounted + other.uncounted)

    def __sub__(self, other: _Done) -> _Done:
        return _Done(self.flops - other.flops, self.uncounted - other.uncounted)

    @property
    def known(self) -> int | None:
        """The FLOPs; None where there were others."""
        return self.flops if not self.uncounted else None


def _sum(before: int | None, flops: int | None, times: int) -> int | None:
    return None if before is None or flops is None else before + times * flops


def _macs(flops: int | None) -> int | None:
    return None if flops is None else flops // 2


def _bytes(tensors: list[torch.Tensor]) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def _counting_flops() -> tuple[flop_counter.FlopCounterMode, set[Any]]:
    """torch's counter, with the attention kernel that only CPUs have and that it leaves out; and what it counts."""
    mapping: dict[Any, Any] = {}
    flop_count: Any = flop_counter.sdpa_flop_count
    kernel = getattr(torch.ops.aten, "_scaled_dot_product_flash_attention_for_cpu", None)
    if kernel is not None:

        def attention(query: Any, key: Any, value: Any, *rest: Any, **more: Any) -> int:
            return int(flop_count(query, key, value))

        mapping[kernel] = attention
    return flop_counter.FlopCounterMode(display=False, custom_mapping=mapping), {*flop_counter.flop_registry, *mapping}
