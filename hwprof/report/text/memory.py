"""The section on memory: a line or two; ``hot_memory`` has the tables."""

from __future__ import annotations

from typing import Final

from hwprof.report.document.memory import Memory
from hwprof.report.text import figures
from hwprof.report.text.page import Page

WORTH_SAYING: Final = 0.1
"""Of what torch allocates, that is new pages."""

NAMED: Final = 3

KEEP: Final = "MALLOC_MMAP_THRESHOLD_=1073741824 MALLOC_TRIM_THRESHOLD_=4294967296 hwprof collect …"
"""glibc then keeps what is freed."""


def show(page: Page) -> None:
    """What the inference allocates, and whether it gets that anew each time."""
    part = page.part(Memory)
    if part is None or part.whole is None:
        return
    page.title(f"Memory, pass {part.pass_}")
    page.notes([of_whole(part, page), *fresh(part, page), "by layer: hwprof report --memory"])


def of_whole(part: Memory, page: Page) -> str:
    """``torch allocates 412 MB an iteration, at most 58.1 MB more at a time than at its begin; peak RSS 855 MB``"""
    whole = part.whole
    texts = []
    if whole is not None and whole.allocated_bytes is None:
        texts.append(f"what torch allocates is not known: {unseen(part)}")
    elif whole is not None:
        allocated, peak = of_bytes(whole.allocated_bytes, page), of_bytes(whole.peak_bytes, page)
        texts.append(f"torch allocates {allocated} an iteration, at most {peak} more at a time than at its begin")
    if part.peak_rss_bytes is not None:
        texts.append(f"peak RSS {of_bytes(part.peak_rss_bytes, page)} (pass {part.peak_pass})")
    if part.allocator is not None:
        texts.append(f"malloc: {part.allocator}")
    return "; ".join(texts)


def unseen(part: Memory) -> str:
    """Why some layers have no memory."""
    return f"in {figures.some(part.unseen, NAMED)} threads of the model's own worked, which torch.profiler does not see"


def fresh(part: Memory, page: Page) -> list[str]:
    """How much of it is new pages, whose, and what would keep it; nothing where that is little."""
    whole = part.whole
    if whole is None or whole.fresh is None or whole.new_bytes is None:
        return []
    if whole.fresh < WORTH_SAYING and not part.anew:
        return []
    told = f"new pages: {of_bytes(whole.new_bytes, page)} an iteration ({whole.faults:,.0f} faults)"
    unplaced = (part.process_faults or 0.0) - (whole.faults or 0.0)
    if unplaced >= WORTH_SAYING * (part.process_faults or 0.0):
        told += f", and {unplaced:,.0f} faults that no layer has (of threads that the model starts)"
    if part.anew:
        told += f", most in {figures.some(part.anew, NAMED)}: freed blocks go back to the kernel"
    return [f"{told}. Try: {KEEP}" if part.allocator == "glibc" and part.anew else told]


def _bytes(amount: str) -> str:
    """With the unit: ``412 MB``, ``64 B``."""
    return f"{amount}B" if amount[-1:].isalpha() else f"{amount} B"


def of_bytes(value: float | None, page: Page) -> str:
    """``412 MB``"""
    return page.glyphs.dash if value is None else _bytes(figures.amount(value, page.glyphs))
