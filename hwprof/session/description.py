"""What the worker says of the model beside what it measured: it calls the model twice more, and that may fail, or take
longer than the user wants to wait."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import Final

import polars as pl

from hwprof.errors import described
from hwprof.interrupts import Interrupt
from hwprof.run.owner_names import path_of
from hwprof.workload.denormals import denormal_shares
from hwprof.workload.layer_tables import layer_tables, tables_without_call
from hwprof.workload.module_call import every_layer_called, has_compiled
from hwprof.workload.module_code import module_code
from hwprof.workload.protocol import Workload

HURRIED: Final = "interrupted before one more call of the model"


def describe(
    workload: Workload,
    is_hurried: Callable[[], bool] = lambda: False,
    *,
    one_layer: bool = False,
    in_any_order: bool = False,
) -> tuple[dict[str, pl.DataFrame], list[str]]:
    """The tables ``layers``, ``layer_calls`` and ``module_code``, and notes on what they lack. Whatever the model's
    code does in that call (it may count its calls, or know only the mode that it was measured in) costs MACs, bytes and
    shapes, and nothing that was measured. Where it ``is_hurried`` nothing is called that takes its time. ``one_layer``:
    other code than its own was measured, of the model as a whole. ``in_any_order``: another program than PyTorch was
    measured, which may call layers in another order: only of those that a model calls once the calls are known."""
    notes = []
    try:
        if is_hurried() and not workload.shapes_suffice:
            notes.append(f"MACs, bytes and shapes not available: {HURRIED}")
            layers, calls = tables_without_call(workload)
        else:
            with every_layer_called() if in_any_order else nullcontext():
                layers, calls = layer_tables(workload)
    except Interrupt:
        raise
    except BaseException as error:
        traceback.print_exc()
        notes.append(f"MACs, bytes and shapes not available: one more call of the model fails: {described(error)}")
        layers, calls = tables_without_call(workload)
    layers = layers.with_columns(_denormal_shares(workload, layers["path"], notes, is_hurried))
    if one_layer:
        layers, calls = (_as_one(workload, rows) for rows in (layers, calls))
        layers = layers.with_columns(leaf=True, own_macs="macs", compiled=True)
    elif in_any_order:
        calls = _called_once(calls, len(workload.forwards()))
    if (in_any_order or has_compiled()) and not one_layer:
        layers = layers.with_columns(compiled=pl.col("compiled") | (pl.int_range(pl.len()) == 0))
    return {"layers": layers, "layer_calls": calls, "module_code": module_code(workload.modules)}, notes


def _as_one(workload: Workload, rows: pl.DataFrame) -> pl.DataFrame:
    """Those of whole models, by the paths that these have where nothing is seen inside of them."""
    paths = {
        path_of(prefix.removesuffix(".")): path_of(f"{prefix}{type(root).__name__}")
        for prefix, root in workload.modules.items()
    }
    found = rows.filter(pl.col("path").is_in([*paths]))
    return found.with_columns(pl.col("path").replace_strict(paths, return_dtype=pl.String))


def _called_once(calls: pl.DataFrame, forwards: int) -> pl.DataFrame:
    return calls.filter(pl.len().over("path") <= forwards)


def _denormal_shares(
    workload: Workload, paths: pl.Series, notes: list[str], is_hurried: Callable[[], bool]
) -> pl.Series:
    """The column of ``layers``; nulls, and a note, where another call of the model fails, or is not made."""
    found: Mapping[str, float] = {}
    try:
        if not is_hurried():
            found = denormal_shares(workload)
        elif not notes:
            notes.append(f"denormal numbers are not counted: {HURRIED}")
    except Interrupt:
        raise
    except BaseException as error:
        traceback.print_exc()
        if not notes:  # it has been said of the call before
            notes.append(f"denormal numbers are not counted: one more call of the model fails: {described(error)}")
    return pl.Series("denormal_share", [found.get(path) for path in paths], dtype=pl.Float64)
