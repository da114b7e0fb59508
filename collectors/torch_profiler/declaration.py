"""What the collector torch_profiler is, without its code."""

from __future__ import annotations

from hwprof.collector.declaration import Declaration, Place
from hwprof.run.passes import TRACE
from hwprof.run.roles import Role

DECLARATION = Declaration(
    name="torch_profiler",
    summary="framework operators with input shapes (torch.profiler)",
    implementation="collectors.torch_profiler.collector:TorchProfilerCollector",
    place=Place.IN_PROCESS,
    role=Role.OPERATORS,
    passes=frozenset({TRACE}),
)
