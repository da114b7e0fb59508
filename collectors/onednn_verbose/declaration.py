"""What the collector onednn_verbose is, without its code."""

from __future__ import annotations

from hwprof.collector.declaration import Declaration, Place
from hwprof.run.passes import TRACE
from hwprof.run.roles import Role

DECLARATION = Declaration(
    name="onednn_verbose",
    summary="oneDNN's primitives: implementation, data types, layouts (ONEDNN_VERBOSE)",
    implementation="collectors.onednn_verbose.collector:OnednnVerboseCollector",
    place=Place.IN_PROCESS,
    role=Role.PRIMITIVES,
    passes=frozenset({TRACE}),
)
