"""``--weights`` without ``--model``: the model is the one that they belong to."""

from __future__ import annotations

from pathlib import Path

import torch

from hwprof.workload.detector import build_detector
from hwprof.workload.model_registry import find_model
from tests.support.command import hwprof


def test_a_checkpoint_tells_its_model_and_one_that_no_model_has_is_bad_usage(tmp_path: Path) -> None:
    state = build_detector(find_model("yolov5n"), seed=0, draw=False, classes=3).module.state_dict()
    file = tmp_path / "best.pt"
    torch.save(state, file)
    found = hwprof("layers", "--weights", str(file), "--imgsz", "64")
    assert found.returncode == 0 and f"{file} belongs to yolov5n" in found.stderr
    assert "yolov5n: 1," in found.stdout.replace("\n", " ") and f"weights: {file}" in " ".join(found.stdout.split())
    torch.save({"a": torch.zeros(3)}, file)
    refused = hwprof("layers", "--weights", str(file))
    assert refused.returncode == 2 and len(refused.stderr.splitlines()) == 1
    assert "no known model has the tensors" in refused.stderr and "--model NAME" in refused.stderr
