"""What ``hwprof collect`` makes before anything is measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from hwprof.cli import collect
from hwprof.workload.spec import WorkloadSpec


@pytest.mark.parametrize("model", ["mine:" + "x" * 300, "mine:" + "ä" * 300])
def test_a_long_name_of_a_model_makes_a_folder_that_file_systems_take(model: str, tmp_path: Path) -> None:
    run = collect._create(tmp_path, WorkloadSpec(model=model))
    assert run.path.is_dir() and run.path.name == run.manifest.name
    assert "mine-" in run.path.name
