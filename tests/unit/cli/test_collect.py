"""What ``hwprof collect`` makes before anything is measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from hwprof.cli import app, collect
from hwprof.workload.spec import WorkloadSpec


@pytest.mark.parametrize("model", ["mine:" + "x" * 300, "mine:" + "ä" * 300])
def test_a_long_name_of_a_model_makes_a_folder_that_file_systems_take(model: str, tmp_path: Path) -> None:
    run = collect._create(tmp_path, WorkloadSpec(model=model))
    assert run.path.is_dir() and run.path.name == run.manifest.name
    assert "mine-" in run.path.name


@pytest.mark.parametrize("option", ["--wait-quiet", "--conf", "--iou"])
@pytest.mark.parametrize("number", ["nan", "inf", "-nan"])
def test_what_is_no_number_is_a_usage_error(option: str, number: str, capsys: pytest.CaptureFixture[str]) -> None:
    """NaN is on neither side of a range."""
    assert app.run(["collect", f"{option}={number}"]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
