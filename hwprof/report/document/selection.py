"""Parts of a document that one looks at by themselves: kernels of the hot layers, and all that is known of a layer."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Final

import msgspec

from hwprof.analysis.attribution import UNATTRIBUTED
from hwprof.errors import HwprofError, UsageError
from hwprof.report.document import kernel_sums
from hwprof.report.document.kernels_schema import Sampled, SampledKernel, SampledLayer, SampledThread, Sampling
from hwprof.report.document.primitives_schema import Primitive
from hwprof.report.document.schema import Document, Kernel, Layer
from hwprof.report.document.threads_schema import WaitingLayer
from hwprof.report.text.kernel_cells import no_samples

NEAR: Final = 3
"""How many layers are named in the place of one that there is not."""


class LayerKernels(msgspec.Struct, kw_only=True, frozen=True):
    """A layer and what took its processor time, the most first."""

    layer: Layer | None
    sampled: SampledLayer
    kernels: list[SampledKernel]


class KernelLayers(msgspec.Struct, kw_only=True, frozen=True):
    """A kernel and the layers that it took time of, most first."""

    kernel: SampledKernel
    layers: list[SampledKernel]


class HotKernels(msgspec.Struct, kw_only=True, frozen=True):
    """What ``hwprof report --kernels`` shows."""

    run: str
    whole: str
    sampling: Sampling
    layers: list[LayerKernels]  # in the report's order of hot layers
    kernels: list[KernelLayers]  # most processor time first


class OneLayer(msgspec.Struct, kw_only=True, frozen=True):
    """What ``hwprof report --layer`` shows: of a leaf layer, or of all leaves within a module together."""

    run: str
    whole: str
    path: str
    layers: list[Layer]  # the leaves, in order of execution
    mean_ns: float | None  # of all together, in one iteration
    share: float | None  # of the whole's time
    sampling: Sampling | None
    sampled: list[SampledLayer]
    threads: list[SampledThread]  # of all together
    waiting: list[WaitingLayer]  # the critical path through those that enough samples tell of
    kernels: list[SampledKernel]  # of all together, ``layer`` is the path asked for
    by_layer: list[LayerKernels]  # of each leaf, where there are several
    followed: dict[str, list[Kernel]]  # by pass: what following the code counted in these layers' kernels
    primitives: list[Primitive]


def hot_kernels(document: Document, top: int) -> HotKernels:
    """Of the document's hottest layers the kernels, and of the ``top`` kernels the layers.

    Raises ``HwprofError`` where nothing was sampled.
    """
    sampled = document.sampled
    if sampled is None:
        missing = no_samples(document)
        raise HwprofError(f"no kernels are known of this run: {missing.reason}", missing.remedy)
    between = [document.unattributed] if document.unattributed is not None else []
    layers = {layer.path: layer for layer in [*document.layers, *between]}
    whole = [kernel for kernel in sampled.kernels if kernel.layer is None][:top]
    return HotKernels(
        run=document.run.name,
        whole=document.whole,
        sampling=_sampling(sampled),
        layers=_by_layer(sampled, layers, [*document.hottest.layers, UNATTRIBUTED]),
        kernels=[KernelLayers(kernel=kernel, layers=_layers_of(kernel, sampled)) for kernel in whole],
    )


def one_layer(document: Document, path: str) -> OneLayer:
    """All that is known of a leaf layer, of the leaves within a module, or of what lies between layers
    (``UNATTRIBUTED``). Raises ``UsageError`` for a path that is none of these."""
    every = [*document.layers, *([document.unattributed] if document.unattributed is not None else [])]
    leaves = [layer for layer in every if layer.path == path or layer.path.startswith(f"{path}.")]
    if not leaves:
        raise UsageError(f"there is no layer {path!r} in this run", _nearest(document, path))
    paths = dict.fromkeys(layer.path for layer in leaves)
    sampled = document.sampled
    found = [layer for layer in sampled.layers if layer.path in paths] if sampled else []
    by_layer = _by_layer(sampled, {layer.path: layer for layer in leaves}, list(paths)) if sampled else []
    means = [layer.time.mean_ns for layer in leaves if layer.time is not None]
    shares = [layer.share for layer in leaves if layer.share is not None]
    return OneLayer(
        run=document.run.name,
        whole=document.whole,
        path=path,
        layers=leaves,
        mean_ns=sum(means) if means else None,
        share=sum(shares) if shares else None,
        sampling=_sampling(sampled) if sampled else None,
        sampled=found,
        threads=kernel_sums.threads(found),
        waiting=[layer for layer in document.waiting.layers if layer.path in paths] if document.waiting else [],
        kernels=kernel_sums.kernels(path, found, [one.kernels for one in by_layer], sampled) if sampled else [],
        by_layer=by_layer if len(leaves) > 1 else [],
        followed={one.name: [kernel for kernel in one.kernels if kernel.layer in paths] for one in document.followed},
        primitives=[row for row in document.primitives.by_layer if row.layer in paths] if document.primitives else [],
    )


def encode(selection: HotKernels | OneLayer) -> bytes:
    """The selection as indented JSON."""
    return msgspec.json.format(msgspec.json.encode(selection), indent=1) + b"\n"


def _sampling(sampled: Sampled) -> Sampling:
    return Sampling(**{field.name: getattr(sampled, field.name) for field in msgspec.structs.fields(Sampling)})


def _by_layer(sampled: Sampled, layers: dict[str, Layer], paths: Sequence[str]) -> list[LayerKernels]:
    """Of those of the layers that were met in samples."""
    known = {layer.path: layer for layer in sampled.layers}
    kernels: dict[str, list[SampledKernel]] = {}
    for kernel in sampled.kernels:
        if kernel.layer is not None:
            kernels.setdefault(kernel.layer, []).append(kernel)
    return [
        LayerKernels(layer=layers.get(path), sampled=known[path], kernels=kernels.get(path, []))
        for path in paths
        if path in known
    ]


def _layers_of(kernel: SampledKernel, sampled: Sampled) -> list[SampledKernel]:
    same = [
        row
        for row in sampled.kernels
        if row.layer is not None and (row.kernel, row.library) == (kernel.kernel, kernel.library)
    ]
    return sorted(same, key=lambda row: -row.cpu_ns)


def _nearest(document: Document, path: str) -> str:
    """What to write instead: the layers and modules whose paths are most like it."""
    leaves = [layer.path for layer in document.layers]
    known = dict.fromkeys(prefix for leaf in leaves for prefix in _prefixes(leaf))
    near = difflib.get_close_matches(path, known, n=NEAR, cutoff=0.5)
    ending = [leaf for leaf in known if leaf.endswith(f".{path}")]
    hint = ", ".join(dict.fromkeys([*ending, *near][:NEAR]))
    return hint or "hwprof report names the hottest ones, hwprof report --format json all"


def _prefixes(path: str) -> list[str]:
    """The path and those of all modules around it, the outermost first."""
    parts = path.split(".")
    return [".".join(parts[: number + 1]) for number in range(len(parts))]
