"""A large source: an iteration takes some of its images, of every input shape in its proportion."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwprof.errors import UsageError
from hwprof.run.manifest import WorkloadRecord
from hwprof.workload import yolo
from hwprof.workload.detector import build_detector
from hwprof.workload.factory import build
from hwprof.workload.model_registry import find_model
from hwprof.workload.pipeline import Pipeline
from hwprof.workload.spec import WorkloadSpec
from tests.support.recorded_stages import RecordedStages

WIDE, TALL, SQUARE = (32, 64), (64, 32), (64, 64)


@pytest.fixture(scope="module")
def photographs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Forty: of ten each the last is square, and three before it are tall."""
    import cv2

    folder = tmp_path_factory.mktemp("photographs")
    for number in range(40):
        size = SQUARE if number % 10 == 9 else TALL if number % 10 > 5 else WIDE
        cv2.imwrite(str(folder / f"{number:02d}.png"), np.full((*size, 3), number, np.uint8))
    return folder


def prepared(photographs: Path, **options: object) -> tuple[yolo.YoloWorkload, WorkloadRecord]:
    workload = build(WorkloadSpec(model="yolov8n", source=str(photographs), imgsz=64, **options))  # type: ignore[arg-type]
    assert isinstance(workload, yolo.YoloWorkload)
    return workload, workload.prepare()


def test_as_many_as_another_pass_took(photographs: Path, stages: RecordedStages) -> None:
    workload, record = prepared(photographs, forwards=10)
    assert (record.images_there, record.forwards, len(record.sources)) == (40, 10, 10)
    shapes = [tuple(arguments[0].shape[2:]) for _, arguments, _ in workload.forwards()]
    assert [shapes.count(size) for size in (WIDE, TALL, SQUARE)] == [6, 3, 1]
    workload.iterate(stages, None)
    assert stages.begun.count("inference") == 10
    assert [line.split()[0] for line in workload.results()] == [Path(source).name for source in record.sources]
    assert prepared(photographs, forwards=10)[1].sources == record.sources


def test_as_many_as_take_about_a_second(photographs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def enough(batches: int, shapes: int, once_s: float, calls: int) -> int:
        assert (batches, shapes) == (40, 3) and once_s > 0 and calls > 100
        return 8

    monkeypatch.setattr(yolo, "enough", enough)
    _, record = prepared(photographs)
    assert (record.images_there, record.forwards) == (40, 10), "of eight the average image is not that of all"


def test_all_of_them_where_the_user_wants_them(photographs: Path) -> None:
    _, record = prepared(photographs, all_images=True)
    assert (record.images_there, record.forwards, len(record.sources)) == (None, 40, 40)


def test_whole_batches_are_taken(photographs: Path) -> None:
    _, record = prepared(photographs, batch=4, forwards=5)
    assert (record.images_there, record.forwards, len(record.sources)) == (40, 5, 20)
    assert {"4x3x32x64", "4x3x64x64"} == set(record.input_shapes)


def test_pictures_keep_their_place_in_the_source(photographs: Path, stages: RecordedStages, tmp_path: Path) -> None:
    source = tmp_path / "in"
    for number in range(6):
        (source / str(number)).mkdir(parents=True)
        (source / str(number) / "a.png").write_bytes((photographs / "00.png").read_bytes())
    (tmp_path / "out").mkdir()
    workload = build(WorkloadSpec(model="yolov8n", source=f"{source}/*/a.png", imgsz=64, forwards=2))
    workload.prepare()
    workload.iterate(stages, tmp_path / "out")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["0001-a.jpg", "0004-a.jpg"]


def test_the_layer_table_needs_one_of_each_shape(photographs: Path) -> None:
    workload = build(WorkloadSpec(model="yolov8n", source=str(photographs), imgsz=64))
    assert workload.prepare(values=False).input_shapes == ["1x3x32x64", "1x3x64x32", "1x3x64x64"]
    assert len(workload.forwards()) == 3


def test_a_broken_image_is_known_though_it_is_not_taken(photographs: Path, tmp_path: Path) -> None:
    for path in photographs.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "01.png").write_bytes(b"not a picture")
    with pytest.raises(UsageError, match=r"01\.png is not an image"):
        prepared(tmp_path, forwards=4)


@pytest.fixture(scope="module")
def pipeline() -> Pipeline:
    return Pipeline(build_detector(find_model("yolov8n"), seed=0), 640, 0.25, 0.45)


sizes = st.tuples(st.integers(1, 1500), st.integers(1, 1500))


@given(sizes)
def test_the_shape_is_known_without_the_image(pipeline: Pipeline, size: tuple[int, int]) -> None:
    image = np.zeros((*size, 3), np.uint8)
    assert pipeline.shape_of([size]) == pipeline.preprocess([image]).shape


@given(sizes, sizes)
def test_of_a_batch_too(pipeline: Pipeline, one: tuple[int, int], other: tuple[int, int]) -> None:
    images = [np.zeros((*size, 3), np.uint8) for size in (one, other)]
    assert pipeline.shape_of([one, other]) == pipeline.preprocess(images).shape
