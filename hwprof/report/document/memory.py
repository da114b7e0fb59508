"""What the process holds, and what its layers allocate, keep and get anew from the kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from hwprof.report.document.part import Part
from hwprof.unavailable import Unavailable

if TYPE_CHECKING:
    from hwprof.analysis.run_analysis import RunAnalysis


class LayerMemory(msgspec.Struct, kw_only=True, frozen=True):
    """Of one iteration, the mean: what torch allocated while a layer ran, or a module's own code. Null: threads were at
    work there whose allocations nobody sees (``unseen``)."""

    path: str  # of the layer; NAME (own): what a module does itself
    type: str | None  # the module's class
    allocations: float | None  # how many
    allocated_bytes: float | None  # in all of them
    freed_bytes: float | None  # while it ran
    kept_bytes: float | None  # allocated within a call, and not freed within it
    largest_bytes: int | None  # of one allocation
    peak_bytes: int | None  # of any call, the most above what was allocated at its begin; null: of own code
    faults: float | None  # page faults
    new_bytes: float | None  # pages of these faults
    fresh: float | None  # of what it allocates


class ModuleMemory(msgspec.Struct, kw_only=True, frozen=True):
    """The same of a module with all that is in it."""

    path: str
    allocations: float | None
    allocated_bytes: float | None
    freed_bytes: float | None
    kept_bytes: float | None
    largest_bytes: int | None
    peak_bytes: int | None


class Memory(Part, kw_only=True, frozen=True, rename={"pass_": "pass"}):
    """By layer, most new pages first. ``pass``: in which torch was watched; faults are of that which times are from."""

    pass_: str
    peak_rss_bytes: int | None  # of the process until the last iteration's end, in the pass that times are from
    peak_pass: str | None
    allocator: str | None
    huge_pages: str | None  # when the kernel gives them: always, madvise, never
    settings: dict[str, str]  # the allocator's, of the environment
    whole: LayerMemory | None
    rows: list[LayerMemory]
    modules: list[ModuleMemory]
    anew: list[str]  # layers that get their memory anew at each call
    missing_layers: Unavailable | None = None
    unseen: tuple[str, ...] = ()  # layers with threads of the model's own, whose allocations nobody sees
    process_faults: float | None = None  # of the process in a median iteration, where that is the inference alone


PART: Final = Memory


def build(analysis: RunAnalysis) -> Memory | Unavailable:
    """From the pass in which torch was watched, and the main pass."""
    from hwprof.analysis import layer_memory
    from hwprof.analysis.main_pass_facts import timed_faults
    from hwprof.analysis.owners import WHOLE

    found, workload = analysis.memory.found, analysis.run.manifest.workload
    if found is None:
        return _of_the_process(analysis)
    alone = workload is not None and not workload.sources
    rows: list[LayerMemory] = []
    modules: list[ModuleMemory] = []
    anew: list[str] = []
    if not isinstance(found.tables, Unavailable):
        layers, inner = found.tables
        rows = [LayerMemory(**row) for row in layers.rename({"layer": "path"}).iter_rows(named=True)]
        modules = [ModuleMemory(**row) for row in inner.rename({"module": "path"}).iter_rows(named=True)]
        anew = layer_memory.anew(layers)
    allocator = found.allocator
    return Memory(
        pass_=found.record.name,
        peak_pass=analysis.main.name if analysis.main is not None else None,
        peak_rss_bytes=found.process.peak_rss_bytes if found.process is not None else None,
        allocator=allocator.allocator if allocator is not None else None,
        huge_pages=allocator.huge_pages if allocator is not None else None,
        settings=allocator.settings if allocator is not None else {},
        whole=next((row for row in rows if row.path == WHOLE), None),
        rows=[row for row in rows if row.path != WHOLE],
        modules=modules,
        anew=anew,
        unseen=tuple(row.path for row in rows if row.allocated_bytes is None and row.path != WHOLE),
        process_faults=timed_faults(analysis) if alone else None,
        missing_layers=found.tables if isinstance(found.tables, Unavailable) else None,
    )


def _of_the_process(analysis: RunAnalysis) -> Memory | Unavailable:
    """Where no layer has any: what the process had, and why that is all."""
    from hwprof.analysis.details import detail_of
    from hwprof.run.details import AllocatorDetail, MemoryDetail
    from hwprof.run.roles import Role

    main = analysis.main
    process, allocator = detail_of(MemoryDetail, main), detail_of(AllocatorDetail, main)
    watched = any(
        one.role is Role.OPERATORS and one.state == "ran"
        for record in analysis.records.values()
        for one in record.collectors
    )
    why = Unavailable("nobody watched torch's allocations", "hwprof collect --passes measure,trace")
    if watched:
        why = Unavailable("torch.profiler saw no allocation in the timed iterations")
    if main is None or process is None:
        return why
    return Memory(
        pass_=main.name,
        peak_rss_bytes=process.peak_rss_bytes,
        peak_pass=main.name,
        allocator=allocator.allocator if allocator is not None else None,
        huge_pages=allocator.huge_pages if allocator is not None else None,
        settings=allocator.settings if allocator is not None else {},
        whole=None,
        rows=[],
        modules=[],
        anew=[],
        missing_layers=why,
    )
