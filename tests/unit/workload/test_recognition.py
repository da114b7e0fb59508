"""Which model a file of weights belongs to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from hwprof.errors import HwprofError, UsageError
from hwprof.workload import model_registry, recognition
from hwprof.workload.detector import build_detector
from hwprof.workload.model_registry import find_model, read_yaml
from hwprof.workload.recognition import recognise


def state_of(name: str, classes: int = 7) -> dict[str, Any]:
    return build_detector(find_model(name), seed=0, draw=False, classes=classes).module.state_dict()


@pytest.mark.parametrize(
    "name",
    [
        "yolov5n", "yolov5n6", "yolov7-tiny", "yolov8n", "yolov10n", "yolo11s", "yolov5nu", "yolov8n-seg",
        "yolov8s-pose", "yolo26n-pose", "yolov8n-obb", "yolo12n-obb", "yolov8n-cls", "yolo11n-cls",
    ],
)  # fmt: skip
def test_a_models_own_tensors_tell_which_it_is(name: str, tmp_path: Path) -> None:
    file = tmp_path / "best.pt"
    torch.save(state_of(name), file)
    assert recognise(file) == name


def only_known(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    monkeypatch.setattr(model_registry, "known_entries", lambda: [find_model(name) for name in names])


@pytest.mark.parametrize("name", ["yolo26n-seg", "yolov10n"])
@pytest.mark.parametrize("end_to_end", [False, True])
def test_a_model_that_was_fused_with_one_of_its_branches_is_recognised(
    name: str, end_to_end: bool, tmp_path: Path
) -> None:
    file = tmp_path / "best.pt"
    detector = build_detector(find_model(name), seed=0, draw=False, classes=3, end_to_end=end_to_end)
    assert detector.end_to_end == end_to_end
    detector.fuse()
    torch.save(detector.module.state_dict(), file)
    assert recognise(file) == name


class _Model:
    """As a training script pickles it: of a class of its own."""

    def __init__(self, layout: str, **described: object) -> None:
        self.yaml_file = layout
        self.yaml = described


@pytest.mark.parametrize("key", ["activation", "head"])
def test_a_file_that_says_that_its_model_computes_otherwise_is_refused(key: str, tmp_path: Path) -> None:
    file = tmp_path / "best.pt"
    layout = read_yaml(find_model("yolov8n").file)
    torch.save({"model": _Model("yolov8n.yaml", **layout), "state_dict": state_of("yolov8n")}, file)
    assert recognise(file) == "yolov8n"
    torch.save(
        {"model": _Model("yolov8n.yaml", **{**layout, key: "nn.ReLU()"}), "state_dict": state_of("yolov8n")}, file
    )
    with pytest.raises(UsageError, match=f"by what it says of itself another {key}"):
        recognise(file)


def test_the_layout_that_a_file_names_is_looked_at_first_and_only_believed_where_it_fits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_at: list[str] = []
    misfit = recognition._misfit

    def watched(weights: Any, entry: Any) -> recognition.Misfit | None:
        looked_at.append(entry.name)
        return misfit(weights, entry)

    monkeypatch.setattr(recognition, "_misfit", watched)
    file = tmp_path / "best.pt"
    torch.save({"model": _Model("cfg/yolov7-tiny.yaml"), "state_dict": state_of("yolov7-tiny")}, file)
    assert recognise(file) == "yolov7-tiny" and looked_at == ["yolov7-tiny"]
    torch.save({"model": _Model("yolov5n.yaml"), "state_dict": state_of("yolov7-tiny")}, file)
    assert recognise(file) == "yolov7-tiny"


def test_what_no_model_has_is_told(tmp_path: Path) -> None:
    file = tmp_path / "best.pt"
    state = state_of("yolov5n")
    state.pop("model.0.conv.weight")
    torch.save(state, file)
    with pytest.raises(UsageError, match="no known model has the tensors"):
        recognise(file)


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        (
            {"model.2.cv2.conv.weight": torch.zeros(7, 48, 1, 1)},
            "has; yolov8n is nearest: model.2.cv2.conv.weight is 7x48x1x1 in the file and 32x48x1x1 in the model. Try",
        ),
        ({"model.3.conv.weight": None}, "has; yolov8n is nearest: the file lacks 1 (model.3.conv.weight). Try"),
        (
            {"model.3.bn.more": torch.zeros(1), "model.4.more": torch.zeros(1)},
            "has; yolov8n is nearest: the file has besides 2 (model.3.bn.more, …). Try",
        ),
        (
            {"model.0.conv.weight": torch.zeros(100, 3, 3, 3), "model.23.more": torch.zeros(1)},
            "(and 1 more of another shape)",
        ),
    ],
)
def test_the_nearest_model_is_named_with_what_differs(
    changed: dict[str, torch.Tensor | None], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "best.pt"
    only_known(monkeypatch, "yolov7-tiny", "yolov8s", "yolov8n")
    state = state_of("yolov8n") | changed
    if len(changed) > 1 and "model.0.conv.weight" in changed:
        state["model.0.bn.weight"] = torch.zeros(100)
    torch.save({key: value for key, value in state.items() if value is not None}, file)
    with pytest.raises(UsageError) as failure:
        recognise(file)
    assert told in str(failure.value), failure.value


def test_what_is_near_no_model_has_none_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "best.pt"
    only_known(monkeypatch, "yolov8n")
    torch.save({"model.0.conv.weight": torch.zeros(16, 3, 3, 3), "model.1.weight": torch.zeros(1)}, file)
    with pytest.raises(UsageError, match=r"has the tensors that .*best\.pt has\. Try"):
        recognise(file)


def test_a_tensor_of_no_dimensions_is_no_models(tmp_path: Path) -> None:
    file = tmp_path / "best.pt"
    torch.save({"model.0.conv.weight": torch.tensor(3.0)}, file)
    with pytest.raises(UsageError, match="no known model has the tensors"):
        recognise(file)


def test_a_process_that_ends_without_an_answer_is_told_with_its_last_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recognition, "__name__", "hwprof.no_such_module")
    with pytest.raises(HwprofError, match=r"could not be told: .*no_such_module"):
        recognition.ask(tmp_path / "best.pt")


def test_of_darknets_weights_the_model_file_beside_them_is_the_model(tmp_path: Path) -> None:
    file = tmp_path / "mine.weights"
    file.write_bytes(bytes(40))
    with pytest.raises(UsageError, match="does not say which model"):
        recognise(file)
    (tmp_path / "mine.cfg").write_text("[net]")
    assert recognise(file) == str(tmp_path / "mine.cfg")
