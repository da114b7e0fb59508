"""Python's garbage collector, which looks at every object that it does not know to be old."""

from __future__ import annotations

from typing import Final

from hwprof.analysis.findings.facts import Facts, Finding, Share, percent

LEAST: Final = 0.02

FUNCTIONS: Final = (
    "gc_collect", "_PyGC_", "collect_with_callback", "deduce_unreachable", "visit_decref", "visit_reachable",
    "visit_add_to_container", "subtract_refs", "update_refs", "move_unreachable", "untrack_", "gc_",
    "mark_all_reachable", "_PyObject_GC_Link",
)  # fmt: skip
"""How the names of its functions begin, of CPython 3.11 to 3.14 (Python/gc.c, Modules/gcmodule.c)."""

TRAVERSE: Final = "_traverse"
"""How those end that show it the objects which an object holds; no other code calls them."""


def find(facts: Facts) -> Finding | None:
    """Where it takes a share worth naming."""
    found = [one for one in facts.kernels if one.domain == "python" and _collects(one.name)]
    share = collecting(facts)
    if share.low < LEAST:
        return None
    return Finding(
        rule="garbage_collection",
        title="Python's garbage collector runs within the inference",
        evidence=f"{percent(share)} of the CPU time in {', '.join(one.name for one in found[:3])}",
        meaning="so many objects are made that it looks for cycles; hwprof spares it the model's own objects",
        remedy="gc.collect(); gc.freeze() when the model is loaded, gc.disable() around the inference",
        gain_low=0.5 * share.low,
        gain_high=share.high,
    )


def collecting(facts: Facts) -> Share:
    """Its share of the inference's CPU time."""
    found = [one for one in facts.kernels if one.domain == "python" and _collects(one.name)]
    return Share(*(min(1.0, sum(one.share[place] for one in found)) for place in range(3)))


def _collects(name: str) -> bool:
    return name.startswith(FUNCTIONS) or name.endswith((TRAVERSE, "traverse"))
