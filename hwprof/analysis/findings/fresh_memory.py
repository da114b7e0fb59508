"""Memory that is given back at each call, and got anew: the kernel clears its pages each time."""

from __future__ import annotations

from typing import Final

from hwprof.analysis.findings.facts import ALLOCATION, PAGE_FAULTS, Facts, Finding, at_most, named, percent

LEAST: Final = 0.02

MUCH: Final = 0.1
"""Where it is not known whose they are: a profiler gets new pages too."""

FEW_FAULTS: Final = 100
"""Where they were counted: not worth a number, as the iterations that were timed or sampled had others."""

KEEP: Final = "MALLOC_MMAP_THRESHOLD_=1073741824 MALLOC_TRIM_THRESHOLD_=4294967296 before the command"
"""glibc then keeps what is freed."""

ALLOCATORS: Final = ("keep_memory", "tcmalloc", "jemalloc")


def find(facts: Facts) -> Finding | None:
    """Where new pages take a share worth naming."""
    share = facts.part(PAGE_FAULTS)
    known_whose = facts.anew or (facts.torch_takes_them and (facts.timed_new_pages or 0.0) >= LEAST)
    if facts.no_new_pages or share.low < (LEAST if known_whose else MUCH):
        return None
    known = facts.faults is not None and facts.faults >= FEW_FAULTS
    faults = f"; {facts.faults:,.0f} page faults an inference" if known else ""
    most = facts.new_memory()
    more = at_most(most, share.high)
    if more and facts.part(ALLOCATION).high > 0:
        more = f"{more}, with malloc"
    layers = list(facts.anew[:3]) or facts.most_in(PAGE_FAULTS)  # of memory that is not torch's nobody knows more
    return Finding(
        rule="fresh_memory",
        title="large blocks are returned to the system at each call",
        evidence=f"{percent(share)} {facts.of_time} in page faults{named(layers)}{more}{faults}",
        meaning="each block that is freed goes back to the kernel, which clears new pages at the next call",
        remedy=KEEP if facts.malloc in (None, "glibc") else f"an allocator that keeps more than {facts.malloc}",
        gain_low=0.0,
        gain_high=most,
        layers=layers,
        remedies=(*(ALLOCATORS if facts.malloc in (None, "glibc") else ()), "compile"),
        by_hand="buffers that are kept, given to operators as out=",
    )
