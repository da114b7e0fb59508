"""Whose code hwprof's own files are."""

from __future__ import annotations

import inspect

import polars as pl
import pytest

from collectors.shared.python_origins import profiler_paths
from hwprof.analysis.python_stacks import Looks, Origin
from hwprof.session import worker
from hwprof.workload import layer_hooks, pipeline, postprocessing, yolo
from hwprof.workload.protocol import Call
from hwprof.workload.user_module import ModuleWorkload


@pytest.mark.parametrize(
    ("code", "origin"),
    [
        (worker, Origin.PROFILER),
        (layer_hooks, Origin.PROFILER),
        (Call, Origin.PROFILER),
        (ModuleWorkload, Origin.PROFILER),
        (pipeline, Origin.PIPELINE),
        (postprocessing, Origin.PIPELINE),
        (yolo, Origin.PIPELINE),
    ],
)
def test_only_what_calls_a_users_model_is_the_profilers(code: object, origin: Origin) -> None:
    file = inspect.getsourcefile(code)  # type: ignore[arg-type]
    assert Looks(profiler=profiler_paths()).origins(pl.Series([file])).to_list() == [origin]
