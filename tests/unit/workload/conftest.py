from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.recorded_stages import RecordedStages
from tests.support.requirements import require_module


@pytest.fixture(scope="session", autouse=True)
def _libraries() -> None:
    """These tests build models: without torch and ultralytics there is nothing to test."""
    require_module("torch")
    require_module("cv2")
    from hwprof.workload.libraries import require_ultralytics

    require_ultralytics()


@pytest.fixture
def stages() -> RecordedStages:
    return RecordedStages()


@pytest.fixture(scope="session")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with three small pictures, two of one shape."""
    import cv2
    import numpy as np

    folder = tmp_path_factory.mktemp("pictures")
    random = np.random.default_rng(0)
    for name, (height, width) in {"a.png": (96, 128), "b.jpg": (96, 128), "tall.png": (160, 64)}.items():
        small = random.integers(0, 255, (height // 8, width // 8, 3), dtype=np.uint8)
        cv2.imwrite(str(folder / name), cv2.resize(small, (width, height), interpolation=cv2.INTER_CUBIC))
    (folder / "notes.txt").write_text("not a picture")
    return folder
