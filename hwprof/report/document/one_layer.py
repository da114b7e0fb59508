"""The page of one layer, or of the layers within a module: all that is known of it."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from typing import Final

import msgspec

from hwprof.analysis import kernel_sums
from hwprof.analysis.core_clock import Clock
from hwprof.analysis.owners import ROOT, UNATTRIBUTED, own
from hwprof.errors import UsageError
from hwprof.report.document.counters import Counters
from hwprof.report.document.document import Document
from hwprof.report.document.energy import Energy, LayerEnergy
from hwprof.report.document.hot_kernels import LayerKernels, kernels_by_layer, sampling
from hwprof.report.document.instrumented import Instrumented, InstrumentedKernel
from hwprof.report.document.kernels import MEASURED, Kernels, SampledKernel, SampledLayer, SampledThread, Sampling
from hwprof.report.document.layers import Layer, Layers, Module
from hwprof.report.document.lines import LineCost, Lines
from hwprof.report.document.memory import LayerMemory, Memory, ModuleMemory
from hwprof.report.document.primitives import Primitive, Primitives
from hwprof.report.document.roofline import Roofline, UnderRoofs
from hwprof.report.document.threads import Threads, ThreadsLayer
from hwprof.report.document.time_budget import Budget, TimeBudget

NEAR: Final = 3
"""How many layers are named in the place of one that there is not."""


ELLIPSES: Final = ("…", "..")
"""What stands in cut names, on terminals of either kind."""


class OneLayer(msgspec.Struct, kw_only=True, frozen=True):
    """What ``hwprof report --layer`` shows: of a leaf layer, or of all leaves within a module together."""

    run: str
    whole: str
    path: str
    type: str | None  # of the path itself
    parameters: int | None  # these two: of the path itself, with everything below it; null: not known
    macs: int | None
    layers: list[Layer]  # the leaves, in order of execution
    counters: Counters | None  # of the leaves; null: nothing was measured
    calls: float | None  # of the path itself in an iteration; null: nobody timed it as one
    median_ns: float | None  # by its own calls, in one iteration
    share: float | None  # of the whole's time: what its rows have together
    leaves_median_ns: float | None  # of its leaf layers, added up: without what it does between them
    leaves_share: float | None
    sampling: Sampling | None
    sampled: list[SampledLayer]
    threads: list[SampledThread]  # of all together
    others_share: float | None  # of their CPU time: of threads that do not work for the calling one
    critical_paths: list[ThreadsLayer]  # the critical path through those that enough samples tell of
    kernels: list[SampledKernel]  # of all together, ``layer`` is the path asked for
    by_layer: list[LayerKernels]  # of each leaf within a module
    instrumented: dict[str, list[InstrumentedKernel]]  # by pass: what was counted in these layers' kernels
    primitives: list[Primitive]
    energy: list[LayerEnergy] = []
    lines: list[LineCost] = []  # of its class's functions, whichever of its instances ran them
    memory: list[LayerMemory] = []
    module_memory: list[ModuleMemory] = []  # of the path itself, with all that is in it
    roofline: UnderRoofs | None = None  # of a leaf layer, or of a module's own code
    budgets: list[Budget] = []  # where the time goes: of the path itself, and of its layers

    @property
    def leaf(self) -> Layer | None:
        """The layer, where the path is a leaf's own: of a module's only leaf the figures are not the module's."""
        return next((layer for layer in self.layers if layer.path == self.path), None)


def one_layer(document: Document, path: str) -> OneLayer:
    """All that is known of a leaf layer, of the leaves within a module, or of what lies between layers
    (``UNATTRIBUTED``). ``path`` may lack its beginning or be as a table cut it, where that is one layer's or module's.
    Raises ``UsageError`` for a path that is none of these."""
    layers = document.part(Layers)
    every = [*layers.rows, *([layers.unattributed] if layers.unattributed is not None else [])] if layers else []
    path = _meant([layer.path for layer in every], path)
    leaves = [layer for layer in every if layer.path in (path, own(path)) or _is_below(layer.path, path)]
    if not leaves:
        paths_of_all = [layer.path for layer in every]
        several = len(_matching(_known(paths_of_all), path))
        what = f"{path!r} may be {several} layers or modules" if several > 1 else f"there is no layer {path!r}"
        raise UsageError(f"{what} in run {document.run.name}", _nearest(paths_of_all, path))
    paths = dict.fromkeys(layer.path for layer in leaves)
    kernels, threads, memory = document.part(Kernels), document.part(Threads), document.part(Memory)
    primitives, instrumented = document.part(Primitives), document.part(Instrumented)
    found = [layer for layer in kernels.layers if layer.path in paths] if kernels else []
    by_layer = kernels_by_layer(kernels, {layer.path: layer for layer in leaves}, list(paths)) if kernels else []
    medians = [layer.time.median_ns for layer in leaves if layer.time is not None and not layer.own]
    shares = [layer.share for layer in leaves if layer.share is not None and not layer.own]
    timed: list[Layer | Module] = [*leaves, *(layers.modules if layers else [])]
    itself = next((one for one in timed if one.path == path), None)
    busy = _threads(found)
    return OneLayer(
        run=document.run.name,
        whole=document.whole,
        path=path,
        type=itself.type if itself is not None else None,
        parameters=itself.parameters if itself is not None else None,
        macs=itself.macs if itself is not None else None,
        layers=leaves,
        counters=layers.counters.narrowed(paths) if layers else None,
        calls=itself.calls if itself is not None else None,
        median_ns=itself.time.median_ns if itself is not None and itself.time is not None else None,
        share=itself.share if itself is not None else None,
        leaves_median_ns=sum(medians) if medians else None,
        leaves_share=sum(shares) if shares else None,
        sampling=sampling(kernels) if kernels else None,
        sampled=found,
        threads=busy,
        others_share=kernel_sums.others_share([msgspec.structs.asdict(thread) for thread in busy]),
        roofline=_under_roofs(document.part(Roofline), path),
        budgets=_budgets(document.part(TimeBudget), path, paths),
        critical_paths=[layer for layer in threads.layers if layer.path in paths] if threads else [],
        kernels=_kernels(path, found, by_layer, kernels) if kernels else [],
        by_layer=by_layer if list(paths) != [path] else [],
        instrumented={
            one.name: [kernel for kernel in one.kernels if kernel.layer in paths]
            for one in (instrumented.passes if instrumented else [])
        },
        primitives=[row for row in primitives.by_layer if row.layer in paths] if primitives else [],
        lines=_lines(document, path),
        memory=[row for row in memory.rows if row.path in paths] if memory else [],
        module_memory=[row for row in memory.modules if row.path == path] if memory else [],
        energy=[row for row in energy.layers if row.path in paths] if (energy := document.part(Energy)) else [],
    )


def _lines(document: Document, path: str) -> list[LineCost]:
    """Of the class of that module, and of those below it."""
    part = document.part(Lines)
    rows = part.of_pipeline() if part else []
    return [row for row in rows if any(one == path or _is_below(one, path) for one in row.modules)]


def _meant(owners: Sequence[str], path: str) -> str:
    """The only layer or module whose path ends like that at a dot, or is cut to that, with the ellipsis of either kind
    of terminal; else the path as it is."""
    known = _known(owners)
    if path == ROOT or path in known or own(path) in known:
        return path
    matching = _matching(known, path)
    return matching[0] if len(matching) == 1 else path


def _known(owners: Sequence[str]) -> list[str]:
    """The paths of the layers, and of the modules around them."""
    return list(dict.fromkeys(prefix for owner in owners for prefix in _prefixes(owner)))


def _matching(known: Sequence[str], path: str) -> list[str]:
    """Those that end like that at a dot, or may be cut to that."""
    parts = re.split("|".join(map(re.escape, ELLIPSES)), path)
    pattern = re.compile(".*".join(map(re.escape, parts)), re.DOTALL)
    return [one for one in known if one.endswith(f".{path}") or (len(parts) > 1 and pattern.fullmatch(one))]


def _is_below(owner: str, path: str) -> bool:
    """Whether it is of a module within the one of that path."""
    return owner.startswith(f"{path}.") if path != ROOT else owner != UNATTRIBUTED


def _threads(layers: Sequence[SampledLayer]) -> list[SampledThread]:
    """The threads of these layers, each with the sum of what it did in them."""
    rows = [msgspec.structs.asdict(thread) for layer in layers for thread in layer.threads]
    return [SampledThread(**row) for row in kernel_sums.threads(rows)]


def _kernels(
    path: str, layers: Sequence[SampledLayer], by_layer: Sequence[LayerKernels], found: Kernels
) -> list[SampledKernel]:
    """The kernels of these layers as those of one that is called ``path``."""
    kernels = [kernel for one in by_layer for kernel in one.kernels]
    if [layer.path for layer in layers] == [path] or not kernels:
        return kernels
    whole = kernel_sums.Whole(
        cpu_ns=sum(layer.cpu_ns for layer in layers),
        samples=sum(layer.samples for layer in layers),
        few_samples=found.few_samples,
        run_cpu_ns=sum(row.cpu_ns for row in found.coverage if row.share is not None),
        run_samples=found.samples,
        clock=None if found.cpi_provenance == MEASURED else _clock(found),
    )
    rows = kernel_sums.kernels([msgspec.structs.asdict(kernel) for kernel in kernels], whole)
    return [SampledKernel(layer=path, layers=None, **row) for row in rows]


def _clock(found: Kernels) -> Clock | None:
    if found.core_ghz is not None and found.core_ghz_error is not None:
        return Clock(found.core_ghz, found.core_ghz_error / found.core_ghz)
    return Clock(found.reference_ghz) if found.reference_ghz is not None else None


def _nearest(leaves: Sequence[str], path: str) -> str:
    """What to write instead: the layers and modules whose paths are most like it."""
    known = _known(leaves)
    near = difflib.get_close_matches(path, known, n=NEAR, cutoff=0.5)
    hint = ", ".join(dict.fromkeys([*_matching(known, path), *near][:NEAR]))
    return hint or "hwprof report names the hottest ones, hwprof report --format json has all"


def _prefixes(path: str) -> list[str]:
    """The path and those of all modules around it, the outermost first."""
    parts = path.split(".")
    return [".".join(parts[: number + 1]) for number in range(len(parts))]


def _under_roofs(known: Roofline | None, path: str) -> UnderRoofs | None:
    return next((one for one in known.rows if one.path in (path, own(path))), None) if known is not None else None


def _budgets(known: TimeBudget | None, path: str, layers: Sequence[str] | dict[str, None]) -> list[Budget]:
    """Of the path itself first; its layers in order of execution."""
    if known is None:
        return []
    by_path = {one.path: one for one in (*known.blocks, *known.layers)}
    return [by_path[one] for one in dict.fromkeys((path, *layers)) if one in by_path]
