"""The workload that a specification asks for."""

from __future__ import annotations

from hwprof.workload.protocol import Workload
from hwprof.workload.shared_weights import SharedWeights
from hwprof.workload.spec import WorkloadSpec


def build(spec: WorkloadSpec, shared: SharedWeights | None = None) -> Workload:
    """The workload, not yet prepared; ``shared``: for weights that take long to make.

    Raises ``UsageError`` for a model that does not exist.
    """
    if ":" in spec.model:
        from hwprof.workload.user_module import ModuleWorkload

        return ModuleWorkload(spec)
    from hwprof.workload.yolo import YoloWorkload

    return YoloWorkload(spec, shared)


def start_torch(threads: int | None) -> None:
    """Imports torch, with so many intra-op threads; None: its own choice."""
    import torch

    if threads:
        torch.set_num_threads(threads)
