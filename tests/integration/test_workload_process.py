"""What importing and building a workload does to a fresh process, and what it must not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.support.requirements import require_module

TOUCH = """
import json, os, socket, sys
from pathlib import Path

def refuse(*arguments, **options):
    raise AssertionError(f"the network was asked for {arguments}")

socket.getaddrinfo = socket.create_connection = refuse
socket.socket.connect = refuse
os.environ["HOME"] = sys.argv[1]
for name in list(os.environ):
    if name.startswith(("YOLO_", "XDG_")):
        del os.environ[name]

from hwprof.workload.model_registry import known_models
light = sorted({"torch", "ultralytics", "cv2", "yaml", "polars"} & set(sys.modules)) if known_models() else None

from hwprof.workload.spec import WorkloadSpec
from hwprof.workload.factory import build
import contextlib

workload = build(WorkloadSpec(model="yolov8n", imgsz=64))
workload.prepare()
workload.iterate(lambda name: contextlib.nullcontext(), None)
print(json.dumps({
    "light": light,
    "torchvision": "torchvision" in sys.modules,
    "matplotlib": "matplotlib" in sys.modules,
    "home": sorted(str(path.relative_to(sys.argv[1])) for path in Path(sys.argv[1]).rglob("*") if path.is_file()),
    "results": workload.results(),
}))
"""


def _run(home: Path) -> dict[str, Any]:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST")}
    done = subprocess.run(
        [sys.executable, "-c", TOUCH, str(home)],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        timeout=300,
        cwd=home.parent,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") == 1, f"something else was printed: {done.stdout}"
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def test_a_workload_keeps_to_itself(tmp_path: Path) -> None:
    require_module("ultralytics")
    home = tmp_path / "home"
    home.mkdir()
    answer = _run(home)
    assert set(answer["light"]) <= {"yaml"}, "listing the models imports a heavy library"
    assert not answer["torchvision"], "torchvision does not load beside every torch"
    assert not answer["matplotlib"]
    assert answer["home"] == [".cache/hwprof/Ultralytics/settings.json"], "ultralytics wrote elsewhere"
    assert [line.split(":")[0] for line in answer["results"]] == ["bus.jpg 64x64", "zidane.jpg 64x64"]
