"""The tables of a run: every column with its type; units stand in the names.

The run directory is the contract between measuring and everything else, so this is the only place
where columns are defined. All times are CLOCK_MONOTONIC nanoseconds.
"""

from __future__ import annotations

from typing import Final, Literal, TypeVar, get_args

import polars as pl

Frame = TypeVar("Frame", pl.DataFrame, pl.LazyFrame)

Provenance = Literal["measured", "instrumented", "simulated", "modelled", "derived"]
"""Where a figure comes from: counters and clocks, instrumented code, the cache model, arithmetic, or those combined."""

PROVENANCES: Final[tuple[str, ...]] = get_args(Provenance)

SpanKind = Literal["iteration", "stage", "layer", "op", "region"]
"""``iteration``: all stages once over the whole source. ``stage``: load, preprocess, inference, postprocess with its
task's nms, masks, keypoints or topk, save. ``layer``: a module of the model (leaf or inner). ``op``: a framework
operator. ``region``: set-up, idle, …"""

UNKNOWN_LIBRARY: Final = "[unknown]"
"""The ``library`` of code that nobody knows the file of."""

TABLES: Final[dict[str, pl.Schema]] = {
    # What happened when. `span` is unique within its pass, -1 never occurs; `parent` is null at the top.
    "spans": pl.Schema(
        {
            "pass": pl.String,
            "iteration": pl.Int32,  # -1: outside of any iteration (set-up, idle)
            "warmup": pl.Boolean,
            "span": pl.Int64,
            "parent": pl.Int64,
            "pid": pl.Int32,
            "tid": pl.Int32,
            "kind": pl.String,
            "path": pl.String,  # stage name, dotted module path, or operator name
            "begin_ns": pl.Int64,
            "end_ns": pl.Int64,
            "input_shapes": pl.String,  # operators of the trace pass, as "1x3x640x480 32x3x3x3"; else null
            "call": pl.Int32,  # layers: which call of this path it is within its iteration, from 0; else null
        }
    ),
    # One value of one event for one thread between a span's two edges. Cumulative counters are differenced already.
    "counts": pl.Schema(
        {
            "pass": pl.String,
            "iteration": pl.Int32,
            "span": pl.Int64,
            "tid": pl.Int32,  # WHOLE_PROCESS_TID where the value is the process's
            "event": pl.String,
            "value": pl.Int64,
            "enabled_ns": pl.Int64,
            "running_ns": pl.Int64,  # < enabled_ns: the kernel multiplexed; 0: the counter never ran
            "provenance": pl.String,
        }
    ),
    # Pieces of code that were counted or sampled: JIT kernels and functions, unique within their pass; one without a
    # name stands for all of its library that has none.
    "kernels": pl.Schema(
        {
            "pass": pl.String,
            "kernel": pl.Int32,
            "domain": pl.String,  # jit, torch, runtime, openmp, tbb, python, system, kernel, other
            "library": pl.String,  # the file's name, "jit", "[kernel]" or "[unknown]"
            "name": pl.String,  # short
            "full_name": pl.String,  # with template arguments and parameters; null: the same
            "address": pl.Int64,  # in that pass's process
        }
    ),
    # `counts` by kernel; what is not there is 0. The OpenMP runtime's kernels are in it, `counts` leaves them out. Of
    # spans that did the very same only one has rows: `repeated_spans` names the others.
    "kernel_counts": pl.Schema(
        {
            "pass": pl.String,
            "iteration": pl.Int32,
            "span": pl.Int64,
            "tid": pl.Int32,
            "kernel": pl.Int32,
            "event": pl.String,
            "value": pl.Int64,
            "provenance": pl.String,
        }
    ),
    # Spans whose rows of `kernel_counts` are those of the span `like`.
    "repeated_spans": pl.Schema({"pass": pl.String, "iteration": pl.Int32, "span": pl.Int64, "like": pl.Int64}),
    # What a thread was doing at one moment. A sample stands for the thread's work since its last one: `period` and
    # `cpu_ns` say how much that was, and where a PMU samples, the counters' differences what came of it.
    "samples": pl.Schema(
        {
            "pass": pl.String,
            "time_ns": pl.Int64,
            "pid": pl.Int32,
            "tid": pl.Int32,
            "cpu": pl.Int32,
            "event": pl.String,  # what is sampled: cycles, or cpu-clock where no PMU counts them
            "period": pl.Int64,  # how many of the event: cycles, or nanoseconds of cpu-clock
            "cpu_ns": pl.Int64,  # processor time
            "domain": pl.String,  # user, kernel, hypervisor, guest kernel, guest user, unknown
            "address": pl.UInt64,
            "kernel": pl.Int32,  # what `address` lies in; null: naming failed
            "stack": pl.Int32,  # of the callers; null where none are known
            "cycles": pl.Int64,  # these three: null where nothing was read with the sample
            "instructions": pl.Int64,
            "llc_misses": pl.Int64,  # by the processor's own recipe for misses of the last-level cache
        }
    ),
    # Callers of samples: `address` is where a call returns to, `parent` the stack of that function's own callers (null:
    # the outermost known). Unique within their pass; a stack comes after its parent.
    "stacks": pl.Schema(
        {
            "pass": pl.String,
            "stack": pl.Int32,
            "parent": pl.Int32,
            "address": pl.UInt64,
            "kernel": pl.Int32,  # that calls
        }
    ),
    # Which functions of Python each thread was in, by looks now and then: from one look to the next it is as it was.
    "python_frames": pl.Schema(
        {
            "pass": pl.String,
            "pid": pl.Int32,
            "tid": pl.Int32,
            "depth": pl.Int32,  # 0: the outermost function of the thread
            "function": pl.String,
            "file": pl.String,
            "line": pl.Int32,  # that it had reached: a function that goes on has a row for each
            "begin_ns": pl.Int64,
            "end_ns": pl.Int64,
        }
    ),
    # Calls of Python's functions on the thread that calls the model, counted one by one, in iterations of their own.
    "python_calls": pl.Schema(
        {
            "pass": pl.String,
            "stage": pl.String,
            "function": pl.String,
            "file": pl.String,  # ~: no Python
            "line": pl.Int32,  # where it begins
            "by_profiler": pl.Boolean,  # what is no Python: hwprof's own code called it; null: not known
            "calls": pl.Int64,
            "primitive_calls": pl.Int64,  # those that no call of the same function led to
            "self_ns": pl.Int64,
            "cumulative_ns": pl.Int64,
        }
    ),
    # What a line of Python took, of all that was profiled: what it calls in the framework is the line's.
    "python_line_costs": pl.Schema(
        {
            "pass": pl.String,
            "file": pl.String,
            "line": pl.Int32,
            "function": pl.String,  # with the class around it: Conv.forward; null: not known
            "python_share": pl.Float64,  # these three: of the profiled time
            "native_share": pl.Float64,
            "system_share": pl.Float64,
            "core_utilization": pl.Float64,  # 1: all processors
            "samples": pl.Int64,  # of the processor
            "allocated_bytes": pl.Int64,
            "peak_bytes": pl.Int64,
            "python_allocated_share": pl.Float64,  # of what it allocated: Python's objects
            "copy_bytes_per_s": pl.Float64,
        }
    ),
    # When a thread was off a processor. Null ends: it began before, or did not end while samples were taken.
    "switches": pl.Schema(
        {
            "pass": pl.String,
            "pid": pl.Int32,
            "tid": pl.Int32,
            "out_ns": pl.Int64,
            "in_ns": pl.Int64,
            "out_cpu": pl.Int32,
            "in_cpu": pl.Int32,
            "preempted": pl.Boolean,  # it would have gone on; false: it waited for something. Null as out_ns
            "reason": pl.String,  # barrier, lock, condition, GIL, I/O, sleep, …; null: preempted, or not known
            "function": pl.String,  # that the reason was told by
            "woken_ns": pl.Int64,  # when another thread ended the wait: known where tracepoints may be used
            "waker": pl.Int32,  # the thread of the process that did; null: not known, or nobody of the process
        }
    ),
    # Which executable memory of a process came from which file, from `time_ns` on, until another row covers it.
    "mappings": pl.Schema(
        {
            "pass": pl.String,
            "time_ns": pl.Int64,
            "pid": pl.Int32,
            "address": pl.UInt64,
            "size_bytes": pl.UInt64,
            "offset_bytes": pl.UInt64,  # in the file
            "file": pl.String,  # "//anon" and the like where there is none, "[vdso]"
        }
    ),
    # What oneDNN says that it executed, in its order; which layer each belongs to, time tells.
    "primitives": pl.Schema(
        {
            "pass": pl.String,
            "order": pl.Int32,
            "begin_ns": pl.Int64,  # null where that version gives no time
            "time_ns": pl.Int64,
            "primitive": pl.String,  # convolution, matmul, reorder, …
            "implementation": pl.String,  # "jit:avx512_core", "ref:any", …
            "propagation": pl.String,  # "forward_training", …; null where there is none
            "data_types": pl.String,  # "src:f32 wei:f32 dst:f32"
            "layouts": pl.String,  # "src:abcd wei:Acdb16a dst:aBcd16b"
            "attributes": pl.String,  # post-ops, scales, …; null where there are none
            "algorithm": pl.String,
            "problem": pl.String,  # "mb1_ic3oc16_ih320oh160kh3sh2dh0ph1_iw320ow160kw3sw2dw0pw1"
        }
    ),
    "threads": pl.Schema(
        {
            "pass": pl.String,
            "pid": pl.Int32,
            "tid": pl.Int32,
            "name": pl.String,
            "role": pl.String,  # main: calls the model; worker: another thread of the process
        }
    ),
    # From when to when threads were there, as far as it was watched. One without a row is known by its records alone.
    "lifetimes": pl.Schema(
        {
            "pass": pl.String,
            "pid": pl.Int32,
            "tid": pl.Int32,
            "born_ns": pl.Int64,  # null: it was there when the process began to be watched
            "ended_ns": pl.Int64,  # null: it was there when the process was watched no more
        }
    ),
    # The model's modules as they stand, in execution order of their first call (never-called ones last).
    "layers": pl.Schema(
        {
            "order": pl.Int32,
            "index": pl.Int32,  # in a model that is one list of modules (model.24.cv2 -> 24); else null
            "path": pl.String,
            "type": pl.String,
            "leaf": pl.Boolean,
            "depth": pl.Int32,
            "parameters": pl.Int64,  # weights of the module and everything below it, packed ones too; null: unreadable
            "macs": pl.Int64,  # one iteration, analytic (products only), with everything below it; null: not known
            "own_macs": pl.Int64,  # of these, those of no module below it; null: not known
            "bytes": pl.Int64,  # one iteration, analytic: inputs + outputs + weights, each once a call; leaves only
            "calls": pl.Int32,  # one iteration; null: not known, as its shapes
            "input_shapes": pl.String,  # of the first call
            "output_shapes": pl.String,
            "more_shapes": pl.Int32,  # how many other input shapes the iteration has
            "convolution": pl.String,  # "k3x3 s2x2 p1x1 d1x1 g1": kernel, stride, padding, dilation, groups; else null
            "pooling": pl.String,  # "max k5x5 s1x1 p2x2 d1x1", of max pooling; else null
            "input": pl.Int32,  # modules whose first call got the same tensors have the same number; null: not called
            "product_type": pl.String,  # what it multiplies: "float32", "bfloat16, float32"; null: nothing, not known
            "denormal_share": pl.Float64,  # of its numbers (inputs, outputs, what it has: the most); null: not counted
            "compiled": pl.Boolean,  # as a whole (torch.compile, TorchScript); of the first row: some code of the model
        }
    ),
    # One call of a module: what an iteration asks of it at its k-th call, by arithmetic alone.
    "layer_calls": pl.Schema(
        {
            "path": pl.String,
            "call": pl.Int32,  # as in spans
            "input_shapes": pl.String,
            "output_shapes": pl.String,
            "macs": pl.Int64,  # with everything below it
            "bytes": pl.Int64,  # leaves only
        }
    ),
    # Where the code of a module's class lies, as far as it is not the framework's. One row a function.
    "module_code": pl.Schema(
        {
            "path": pl.String,
            "function": pl.String,  # with the class that has it: Conv.forward
            "file": pl.String,
            "first_line": pl.Int32,
            "last_line": pl.Int32,  # with the functions inside of it
        }
    ),
    # What the framework allocated and freed, in the order of time.
    "allocations": pl.Schema(
        {
            "pass": pl.String,
            "time_ns": pl.Int64,
            "pid": pl.Int32,
            "tid": pl.Int32,
            "address": pl.UInt64,
            "bytes": pl.Int64,  # negative: freed
        }
    ),
    # Values over time. Cumulative energy is in joules, unwrapped, from 0 at the first reading.
    "series": pl.Schema(
        {
            "pass": pl.String,
            "time_ns": pl.Int64,
            "name": pl.String,  # "memory/rss", "memory/page-faults", "allocator/in-use", "energy/package-0", …
            "unit": pl.String,  # "B", "1/s", "J", "W", "Hz"
            "value": pl.Float64,
        }
    ),
}

NULLABLE: Final[dict[str, frozenset[str]]] = {
    "spans": frozenset({"parent", "input_shapes", "call"}),
    "kernels": frozenset({"name", "full_name", "address"}),
    "samples": frozenset({"kernel", "stack", "cycles", "instructions", "llc_misses"}),
    "stacks": frozenset({"parent", "kernel"}),
    "python_line_costs": frozenset({"function"}),
    "switches": frozenset(
        {"out_ns", "in_ns", "out_cpu", "in_cpu", "preempted", "reason", "function", "woken_ns", "waker"}
    ),
    "lifetimes": frozenset({"born_ns", "ended_ns"}),
    "python_calls": frozenset({"by_profiler"}),
    "primitives": frozenset({"begin_ns", "propagation", "attributes", "algorithm"}),
    "layers": frozenset(
        {"index", "parameters", "macs", "own_macs", "bytes", "calls", "input_shapes", "output_shapes"}
        | {"more_shapes", "convolution", "pooling", "input", "product_type", "denormal_share", "compiled"}
    ),
    "layer_calls": frozenset({"output_shapes", "macs", "bytes"}),
}
"""The columns that may be null, or missing in a collector's rows; every other one has a value in each row."""

LATER: Final[dict[str, frozenset[str]]] = {
    "layers": frozenset({"own_macs", "convolution", "pooling", "input", "product_type", "denormal_share", "compiled"}),
    "switches": frozenset({"woken_ns", "waker"}),
    "python_calls": frozenset({"by_profiler"}),
}
"""Columns that runs of older versions lack: null there."""

KEYS: Final[dict[str, tuple[str, ...]]] = {"threads": ("pass", "pid", "tid")}
"""Of the tables that several collectors of a pass may fill with the same: what a row is known by; the first one of them
counts."""


UNIQUE: Final[dict[str, tuple[str, ...]]] = {
    "spans": ("pass", "span"),
    "repeated_spans": ("pass", "span"),
    "primitives": ("pass", "order"),
    "lifetimes": ("pass", "pid", "tid", "born_ns"),
}
"""What no two rows of a table have the same: whoever joins with it counts on that."""


BEGIN: Final[dict[str, tuple[str, ...]]] = {
    "spans": ("begin_ns",),
    "series": ("time_ns",),
    "samples": ("time_ns",),
    "switches": ("out_ns", "in_ns"),
    "primitives": ("begin_ns",),
    "python_frames": ("begin_ns",),
    "allocations": ("time_ns",),
}
"""Of tables of what happened, when it began: the first of these columns that has a value."""


def required(table: str) -> list[str]:
    """The columns that have a value in each row, by name."""
    return sorted(set(TABLES[table]) - NULLABLE.get(table, frozenset()))


def require_values(table: str, frame: pl.DataFrame) -> None:
    """Raises ``polars.exceptions.SchemaError`` for rows, as ``conform`` makes them, that lack what whoever reads the
    table relies on."""
    lacking = [name for name in required(table) if frame[name].has_nulls()]
    if lacking:
        raise pl.exceptions.SchemaError(f"rows of {table} without {', '.join(lacking)}")


def empty(table: str) -> pl.DataFrame:
    """A table without rows, with its columns and types."""
    return pl.DataFrame(schema=TABLES[table])


def conform(table: str, frame: Frame) -> Frame:
    """``frame`` with the table's columns in the table's order and types; missing nullable columns become null.

    Raises ``polars.exceptions.PolarsError`` where a column cannot be converted without loss.
    """
    schema = TABLES[table]
    known = frame.collect_schema().names()
    unknown = set(known) - set(schema)
    if unknown:
        raise pl.exceptions.SchemaError(f"table {table} has no column {', '.join(sorted(unknown))}")
    return frame.select(
        pl.col(name).cast(dtype) if name in known else pl.lit(None, dtype=dtype).alias(name)
        for name, dtype in schema.items()
    )
