"""The page of hot kernels: of each hot layer its kernels, and of each hot kernel its layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from hwprof.analysis.observers import observes
from hwprof.analysis.owners import UNATTRIBUTED
from hwprof.errors import HwprofError
from hwprof.report.document.document import Document
from hwprof.report.document.kernels import Kernels, SampledKernel, SampledLayer, Sampling
from hwprof.report.document.layers import Layer, Layers


class LayerKernels(msgspec.Struct, kw_only=True, frozen=True):
    """A layer and what took its processor time, the most first."""

    layer: Layer | None
    sampled: SampledLayer
    kernels: list[SampledKernel]


class KernelLayers(msgspec.Struct, kw_only=True, frozen=True):
    """A kernel that works, and the layers that it took time of, most first."""

    kernel: SampledKernel
    layers: list[SampledKernel]


class HotKernels(msgspec.Struct, kw_only=True, frozen=True):
    """What ``hwprof report --kernels`` shows."""

    run: str
    whole: str
    sampling: Sampling
    layers: list[LayerKernels]  # in the report's order of hot layers
    kernels: list[KernelLayers]  # most processor time first


PAGE: Final = HotKernels


def select(document: Document, top: int) -> HotKernels:
    """Of the document's hottest layers the kernels, and of the ``top`` kernels the layers.

    Raises ``HwprofError`` where nothing was sampled.
    """
    found = document.part(Kernels)
    if found is None:
        why = document.absent["kernels"]
        raise HwprofError(f"no kernels are known of this run: {why.reason}", why.remedy)
    layers = document.part(Layers)
    every = [*layers.rows, layers.unattributed] if layers is not None else []
    by_path = {layer.path: layer for layer in every if layer is not None}
    working = (one for one in found.kernels if one.waits is None and not observes(one.kernel))
    whole = [kernel for kernel in working if kernel.layer is None][:top]
    named = found.with_names()
    return HotKernels(
        run=document.run.name,
        whole=document.whole,
        sampling=sampling(found),
        layers=kernels_by_layer(found, by_path, [*document.hottest.layers, UNATTRIBUTED]),
        kernels=[KernelLayers(kernel=kernel, layers=_layers_of(kernel, named)) for kernel in whole],
    )


def sampling(found: Kernels) -> Sampling:
    """How it was sampled, without what was found."""
    return Sampling(**{field.name: getattr(found, field.name) for field in msgspec.structs.fields(Sampling)})


def kernels_by_layer(found: Kernels, layers: dict[str, Layer], paths: Sequence[str]) -> list[LayerKernels]:
    """Of those of the layers that were met in samples."""
    known = {layer.path: layer for layer in found.layers}
    kernels: dict[str, list[SampledKernel]] = {}
    for kernel in found.with_names():
        if kernel.layer is not None:
            kernels.setdefault(kernel.layer, []).append(kernel)
    return [
        LayerKernels(layer=layers.get(path), sampled=known[path], kernels=kernels.get(path, []))
        for path in paths
        if path in known
    ]


def _layers_of(kernel: SampledKernel, named: Sequence[SampledKernel]) -> list[SampledKernel]:
    same = [
        row for row in named if row.layer is not None and (row.kernel, row.library) == (kernel.kernel, kernel.library)
    ]
    return sorted(same, key=lambda row: -row.cpu_ns)
