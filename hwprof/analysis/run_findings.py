"""What rules look at in a run, as far as no other section has it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from hwprof.analysis import layer_memory
from hwprof.analysis.model_facts import model_facts
from hwprof.analysis.owners import INFERENCE, WHOLE
from hwprof.analysis.thread_facts import thread_facts
from hwprof.unavailable import Unavailable

if TYPE_CHECKING:
    from hwprof.analysis.run_analysis import RunAnalysis


def convolutions(modules: pl.DataFrame) -> int:
    """How many layers convolve (the table ``layers``)."""
    return modules.filter(pl.col("convolution").is_not_null()).unique("path").height


def stage_shares(analysis: RunAnalysis) -> dict[str, float]:
    """Of an iteration, of the main pass."""
    if analysis.figures is None:
        return {}
    rows = analysis.figures.stages.rows.select("owner", "inside", "total_ns")
    whole_ns = float(rows.filter(pl.col("inside").is_null())["total_ns"].sum() or 0)
    shares = {owner: ns / whole_ns for owner, _, ns in rows.iter_rows() if whole_ns}
    shares.pop(INFERENCE, None)
    return shares


def further_facts(analysis: RunAnalysis) -> dict[str, Any]:
    """Those of threads and of the model."""
    return {**thread_facts(analysis), **model_facts(analysis)}


def memory_facts(analysis: RunAnalysis) -> dict[str, Any]:
    """``anew``, ``faults`` and ``malloc`` of ``findings.Facts``."""
    found = analysis.memory.found
    if found is None or isinstance(found.tables, Unavailable):
        return {}
    rows, _ = found.tables
    faults = rows.filter(layer=WHOLE)["faults"]
    return {
        "anew": layer_memory.anew(rows),
        "faults": faults[0] if faults.len() else None,
        "malloc": found.allocator.allocator if found.allocator is not None else None,
    }
