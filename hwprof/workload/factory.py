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


def preload(model: str) -> None:
    """Imports what the workload of this name will, and starts no thread; raises ``ImportError`` and ``HwprofError``."""
    if ":" in model:
        from hwprof.workload import user_module  # noqa: F401
    else:
        from hwprof.workload import yolo

        yolo.preload()
