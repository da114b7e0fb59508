"""Names that look like patterns, limits, a home that is not there, libraries that are not installed, figures that a
machine does not have: each is one line, or a dash with its reason, and costs nothing that was measured."""

from __future__ import annotations

import os
import pwd
import resource
import shutil
import subprocess
import sys
import sysconfig
import venv
from functools import partial
from pathlib import Path

import pytest

from hwprof.run.directory import RunDirectory
from tests.support import synthetic_variants as variants
from tests.support.command import ROOT, hwprof, hwprof_here, messages
from tests.support.requirements import require_module
from tests.support.synthetic_run import build

QUICK = ("--passes", "measure", "--no-instrumented", "--no-peaks", "--iterations", "1", "--warmup", "1")
IDENTITY = ("--model", "torch.nn:Identity", "--input-shape", "1,3,8,8")

MANY = """
from torch import nn

def many():
    pairs = [nn.Sequential(nn.Conv2d(4, 4, 1), nn.ReLU()) for _ in range(1000)]
    return nn.Sequential(nn.Conv2d(3, 4, 1), *pairs)
"""

BUSY = """
import torch

class Busy(torch.nn.Module):
    def forward(self, x):
        while True:
            x = x + 1

def factory():
    return torch.nn.Identity(), torch.rand(1)

def failing():
    raise ValueError("no such thing")

def endless():
    return Busy(), torch.rand(1)
"""


@pytest.mark.parametrize("name", ["o[1]", "o*", "o?", "{o,p}", "**"])
def test_no_name_of_a_folder_is_a_pattern(name: str, tmp_path: Path) -> None:
    one, other = build(tmp_path / name), build(tmp_path / "o1")
    shown = hwprof_here("report", str(one.path), "--format", "json")
    assert shown.returncode == 0, shown.stderr
    rows = RunDirectory.open(one.path).read("spans").height
    assert rows == RunDirectory.open(other.path).read("spans").height, "one run's rows, not those of both"
    refused = hwprof_here("report", str(tmp_path / "o?" / one.path.name.replace("2", "[2]")))
    assert refused.returncode == 2 and len(messages(refused.stderr)) == 1


def test_what_is_measured_into_a_folder_with_brackets_is_there(tmp_path: Path) -> None:
    require_module("torch")
    done = hwprof("collect", *IDENTITY, *QUICK, "--output", "o[1]", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert hwprof("report", "--root", "o[1]", cwd=tmp_path).returncode == 0


def test_a_report_is_the_same_bytes_each_time(tmp_path: Path) -> None:
    run = variants.sampled(tmp_path)
    command = ("report", str(run.path), "--format", "json")
    first = hwprof_here(*command).stdout
    assert hwprof_here(*command).stdout == first, "from what is kept"
    (run.path / "document.json").unlink()
    assert hwprof_here(*command).stdout == first, "made anew"
    (run.path / "document.json").unlink()
    fresh = hwprof(*command, environment={"PYTHONHASHSEED": "7", "POLARS_MAX_THREADS": "1"})
    assert fresh.stdout == first, "by another process"


def test_metrics_that_the_machine_does_not_have_are_dashes_with_their_reason(tmp_path: Path) -> None:
    run = variants.sampled_without_pmu(tmp_path)
    shown = hwprof_here("report", str(run.path), "--all", "--metrics", "topdown,cache,dram_gbytes")
    assert shown.returncode == 0, shown.stderr
    for title in ("LLC MPKI", "frontend %"):
        assert title in shown.stdout
    assert "no PMU" in shown.stdout and "Try: " in shown.stdout


def test_a_user_without_a_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = build(tmp_path)
    monkeypatch.delenv("HOME")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)

    def nobody(_: int) -> None:
        raise KeyError("getpwuid(): uid not found")

    monkeypatch.setattr(pwd, "getpwuid", nobody)
    for command in (("report", str(run.path)), ("explain", "cpi"), ("models",)):
        shown = hwprof_here(*command)
        assert (shown.returncode, shown.stderr) == (0, "")


@pytest.mark.parametrize(
    "options",
    [("--source", "~nouser/a.jpg"), ("--weights", "~nouser/w.pt"), ("--seed", "9" * 40), ("--conf", "nan"),
     ("--imgsz", "9" * 12), ("--threads", "100000"), ("--output", "/proc/nowhere")],
)  # fmt: skip
def test_options_that_nobody_can_mean_are_one_line(options: tuple[str, ...], tmp_path: Path) -> None:
    require_module("ultralytics")
    done = hwprof("collect", "--model", "yolov8n", *QUICK, *options, cwd=tmp_path)
    assert done.returncode in (1, 2), done.stdout
    (line,) = messages(done.stderr)
    assert line.startswith("hwprof: ") and "defect" not in line
    assert not list(tmp_path.glob("results/2*")), "nothing was begun"


@pytest.mark.parametrize(
    ("shape", "says"), [("9,9,9999999,9999999", "more than 1099511627776 elements"), ("9,99999,99999", "memory")]
)
def test_a_shape_that_no_memory_holds_is_one_line(shape: str, says: str, tmp_path: Path) -> None:
    require_module("torch")
    done = hwprof("collect", *IDENTITY[:2], "--input-shape", shape, *QUICK, cwd=tmp_path)
    assert done.returncode in (1, 2)
    (line,) = messages(done.stderr)
    assert line.startswith("hwprof: ") and says in line and "defect" not in line


def limited(which: int, value: int, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", "-m", "hwprof", *arguments],
        cwd=cwd,
        env=os.environ | {"COLUMNS": "100", "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=200,
        preexec_fn=lambda: resource.setrlimit(which, (value, value)),
    )


def test_a_limit_of_processor_time_is_not_told_as_one_of_memory_alone(tmp_path: Path) -> None:
    require_module("torch")
    (tmp_path / "busy.py").write_text(BUSY)
    done = limited(resource.RLIMIT_CPU, 8, "collect", "--model", "busy:endless", *QUICK, cwd=tmp_path)
    assert done.returncode == 1
    (line,) = messages(done.stderr)
    assert "ulimit -t" in line


def test_where_frida_cannot_be_loaded_the_limit_of_addresses_is_named(tmp_path: Path) -> None:
    """Loading it ended the worker with exit code 2, which was told as the model's doing."""
    require_module("torch")
    require_module("frida")
    passes = ("--counters", "instrumented", *(option for option in QUICK if option != "--no-instrumented"))
    done = limited(resource.RLIMIT_AS, 2_600_000 << 10, "collect", *IDENTITY, *passes, cwd=tmp_path)
    assert done.returncode == 1
    assert "address space are in use" in messages(done.stderr)[-1] and "ulimit -v" in messages(done.stderr)[-1]


def test_a_limit_of_the_size_of_files_says_so(tmp_path: Path) -> None:
    require_module("torch")
    done = limited(resource.RLIMIT_FSIZE, 2048, "collect", *IDENTITY, *QUICK, cwd=tmp_path)
    assert done.returncode == 1
    assert "ulimit -f" in messages(done.stderr)[-1] and "Traceback" not in done.stderr


def test_where_a_table_may_not_grow_no_row_is_left_out(tmp_path: Path) -> None:
    """Of the session's own, which are written while collectors' results are taken: none of these is to blame."""
    require_module("torch")
    (tmp_path / "many.py").write_text(MANY)
    model = ("--model", "many:many", "--input-shape", "1,3,8,8", "--iterations", "40", "--passes", "measure")
    alone = ("--no-instrumented", "--no-peaks", "--no-pyspy")
    done = limited(resource.RLIMIT_FSIZE, 250_000, "collect", *model, *alone, cwd=tmp_path)
    assert done.returncode == 1
    assert "a file may not become that large" in messages(done.stderr)[-1]
    assert "ulimit -f" in messages(done.stderr)[-1] and "LOST" not in done.stdout
    assert not list(tmp_path.rglob("*.parquet"))


def test_the_users_own_traceback_is_what_debug_shows(tmp_path: Path) -> None:
    require_module("torch")
    (tmp_path / "busy.py").write_text(BUSY)
    done = hwprof("collect", "--model", "busy:failing", *QUICK, "--debug", cwd=tmp_path)
    assert done.returncode == 1
    assert 'busy.py", line' in done.stderr and "in failing" in done.stderr
    assert 'raise ValueError("no such thing")' in done.stderr
    plain = hwprof("collect", "--model", "busy:failing", *QUICK, cwd=tmp_path)
    (line,) = messages(plain.stderr)
    assert "no such thing" in line and "Traceback" not in line


def python_without(folder: Path, *missing: str) -> Path:
    """A Python that has all that this one has, but for some packages."""
    venv.create(folder, with_pip=False)
    there, here = (
        folder / "lib" / f"python{sysconfig.get_python_version()}" / "site-packages",
        sysconfig.get_path("purelib"),
    )
    for one in Path(here).iterdir():
        if not one.name.startswith(missing):
            (there / one.name).symlink_to(one)
    return folder / "bin" / "python"


@pytest.mark.parametrize(
    ("missing", "model", "code"), [("torch", "busy:factory", 1), ("torch", "yolov7", 1), ("ultralytics", "yolov8n", 2)]
)
def test_a_library_that_is_not_installed_is_named_with_what_brings_it(
    missing: str, model: str, code: int, tmp_path: Path
) -> None:
    (tmp_path / "busy.py").write_text(BUSY)
    python = python_without(tmp_path / "venv", missing)
    command = [str(python), "-P", "-m", "hwprof", "collect", "--model", model, *QUICK]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=100)
    assert done.returncode == code
    (line,) = messages(done.stderr)
    assert "pip install" in line and "hwprof[" in line
    assert not (tmp_path / "results").exists(), "no run is left behind"


def test_no_module_that_is_kept_compiled_is_cut(tmp_path: Path) -> None:
    """By a limit of the size of files, where hwprof is run for the first time."""
    place = tmp_path / "hwprof"
    shutil.copytree(ROOT / "hwprof", place, ignore=shutil.ignore_patterns("__pycache__"))
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-P", "-m", "hwprof", "--version"]
    for bytes_ in (1024, 2048, 4096, resource.RLIM_INFINITY):
        done = subprocess.run(
            command,
            cwd=tmp_path,
            env=environment | {"PYTHONPATH": str(tmp_path)},
            capture_output=True,
            text=True,
            timeout=200,
            preexec_fn=partial(resource.setrlimit, resource.RLIMIT_FSIZE, (bytes_, bytes_)),
        )
        assert (done.returncode, done.stderr) == (0, "")
    assert list(place.rglob("*.pyc")), "else this shows nothing"
