"""The commands that measure nothing: what they print, and how they refuse."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from csv import DictReader
from pathlib import Path

import pytest

from hwprof.cli.app import COMMANDS
from tests.support.command import hwprof, messages, start_hwprof
from tests.support.processes import alive, gone_soon
from tests.support.requirements import require_module


@pytest.mark.parametrize("command", [[], *([name] for name in COMMANDS)])
def test_help_has_examples(command: list[str], tmp_path: Path) -> None:
    done = hwprof(*command, "--help", cwd=tmp_path)
    assert done.returncode == 0
    assert "Example" in done.stdout
    if not command:
        assert [line.split()[0] for line in done.stdout.partition("Commands:\n")[2].splitlines()] == list(COMMANDS)


def test_the_command_line_starts_without_anything_heavy() -> None:
    code = (
        "import sys\nfrom hwprof.cli.app import run\nrun(['--help'])\n"
        "heavy = {'torch', 'polars', 'numpy', 'rich', 'cv2', 'ultralytics'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip().splitlines()[-1] == "[]"


def test_doctor_names_every_collector_with_reason_and_remedy(tmp_path: Path) -> None:
    done = hwprof("doctor", "--format", "json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    findings = {finding["name"]: finding for finding in json.loads(done.stdout)["findings"]}
    assert {"perf", "torch_profiler", "rapl", "memory", "torch", "ultralytics"} <= set(findings)
    for finding in findings.values():
        assert finding["available"] or (finding["reason"] and finding["remedy"]), finding
    for width in ((), ("--width", "60")):
        text = hwprof("doctor", *width, cwd=tmp_path, columns=80).stdout
        assert all(name in text for name in findings)
        assert max(map(len, text.splitlines())) <= int(width[1] if width else 80)


@pytest.mark.parametrize("columns", [80, 120])
def test_layers_of_yolov7(columns: int, tmp_path: Path) -> None:
    require_module("ultralytics")
    done = hwprof("layers", "--model", "yolov7", "--imgsz", "64", "--runs", "3", cwd=tmp_path, columns=columns)
    assert done.returncode == 0, done.stderr
    assert "36,905,341 parameters" in " ".join(done.stdout.split())
    assert "model.105.m.2" in done.stdout
    assert "mean ms" in done.stdout and "time: mean of 3 forwards" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= columns


def test_layers_as_csv_and_json_agree(tmp_path: Path) -> None:
    require_module("ultralytics")
    options = ("layers", "--model", "yolov8n", "--imgsz", "64", "--runs", "0")
    csv = hwprof(*options, "--format", "csv", cwd=tmp_path).stdout.splitlines()
    rows = json.loads(hwprof(*options, "--format", "json", cwd=tmp_path).stdout)
    assert len(csv) == len(rows) + 1
    assert csv[0].startswith("order,index,path,type") and "time_mean_ns" not in csv[0]


def test_times_of_layers_and_of_modules_own_code_add_up_to_the_forwards(tmp_path: Path) -> None:
    require_module("ultralytics")
    options = ("layers", "--model", "yolov8n", "--imgsz", "64", "--runs", "4", "--threads", "1", "--format")
    rows = {row["path"]: row for row in json.loads(hwprof(*options, "json", cwd=tmp_path).stdout)}
    whole, leaves = rows["whole"], [row for row in rows.values() if row["leaf"]]
    assert list(rows)[-2:] == ["unattributed", "whole"] and len(leaves) == 128
    assert all(0 < row["time_min_ns"] <= row["time_mean_ns"] for row in leaves if row["calls"])
    parts = sum(row["time_mean_ns"] for path, row in rows.items() if row["calls"] or path == "unattributed")
    assert parts == pytest.approx(whole["time_mean_ns"]) and whole["runs"] <= 4
    assert whole["macs"] == sum(row["macs"] for row in leaves) and whole["parameters"] > 3_000_000
    *_, first = DictReader(hwprof(*options, "csv", "--all", cwd=tmp_path).stdout.splitlines())
    assert {"time_mean_ns", "time_min_ns", "share", "runs"} <= set(first)


SLOW = """
import time
from torch import nn
import torch

class Slow(nn.Linear):
    def forward(self, x):
        time.sleep(1)
        print("a word of the model's")
        return super().forward(x)

def model():
    return Slow(2, 2), torch.zeros(1, 2)
"""


def test_a_model_that_takes_long_is_told_of_meanwhile(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(SLOW)
    code = "from hwprof.cli import app, progress_lines\nprogress_lines.EVERY_S = 0.2\n"
    arguments = ["layers", "--model", "mine:model", "--runs", "3", "--format", "csv"]
    done = subprocess.run(
        [sys.executable, "-c", f"{code}app.run({arguments})"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    progress = [line for line in done.stderr.splitlines() if line.startswith("[layers]")]
    phases = ["building mine:model and calling it", "warming up", "measuring", "describing layers"]
    assert progress == [f"[layers] {phase}" for phase in phases]
    printed = [line for line in done.stderr.splitlines() if line not in progress]
    assert set(printed) == {"a word of the model's"} and "Slow" in done.stdout


ATTENTIVE = """
import torch
from torch import nn

class Attentive(nn.Module):
    def __init__(self):
        super().__init__()
        self.project = nn.Linear(8, 8)

    def forward(self, x):
        y = self.project(x)
        return y @ y.mT

def model():
    return Attentive(), torch.zeros(4, 8)
"""


def test_every_format_has_the_products_of_modules_own_code(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(ATTENTIVE)
    csv, rows, text = (
        hwprof("layers", "--model", "mine:model", "--runs", "0", "--format", form, cwd=tmp_path).stdout
        for form in ("csv", "json", "text")
    )
    macs = {row["path"]: row["macs"] for row in json.loads(rows)}
    assert macs == {"(root) (own)": 4 * 4 * 8, "project": 4 * 8 * 8}
    assert {row["path"]: int(row["macs"]) for row in DictReader(csv.splitlines())} == macs
    assert f"{sum(macs.values())} MACs" in " ".join(text.split())
    assert all(path in text for path in macs)


TIRING = """
import torch, time
from pathlib import Path

class Tiring(torch.nn.Linear):
    calls = 0

    def forward(self, x):
        self.calls += 1
        if self.calls == 5:
            self.ends()
        return super().forward(x)

    def ends(self):
        raise ValueError("tired of it")

class Stopping(Tiring):
    def ends(self):
        Path("ready").touch()
        time.sleep(60)

def model():
    return Tiring(2, 2), torch.zeros(1, 2)

def stopping():
    return Stopping(2, 2), torch.zeros(1, 2)
"""


def test_a_model_that_raises_while_it_is_timed_ends_with_one_line(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(TIRING)
    done = hwprof("layers", "--model", "mine:model", cwd=tmp_path)
    (line,) = messages(done.stderr)
    assert done.returncode == 1 and "ValueError: tired of it" in line and done.stdout == ""


def test_ctrl_c_while_layers_are_timed_ends_with_one_line(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(TIRING)
    with start_hwprof("layers", "--model", "mine:stopping", cwd=tmp_path) as process:
        while not (tmp_path / "ready").exists():
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        out, complaints = process.communicate()
    assert (process.returncode, messages(complaints), out) == (130, ["hwprof: interrupted"], "")


ENDS = """
import os, signal, sys, time
from pathlib import Path
import torch

def in_silence():
    os._exit(0)

def with_a_code():
    print("on its way")
    os._exit(3)

def closing():
    os.closerange(0, 1000)

def without_streams():
    sys.stdout = sys.stderr = None
    return torch.nn.Linear(2, 2), torch.zeros(1, 2)

def closing_streams():
    os.close(0), os.close(1)
    return torch.nn.Linear(2, 2), torch.zeros(1, 2)

def printing():
    print("\\x1b[2J forged", flush=True)
    os.write(2, b"x" * 10_000)
    return torch.nn.Linear(2, 2), torch.zeros(1, 2)

def leaving_the_session():
    import subprocess
    started = subprocess.Popen(["sleep", "60"], start_new_session=True)
    Path("pid").write_text(str(started.pid))
    return torch.nn.Linear(2, 2), torch.zeros(1, 2)

def interrupting():
    raise KeyboardInterrupt("mine")

class WithoutName(type):
    def __getattribute__(cls, name):
        if name in ("__name__", "__qualname__", "__module__"):
            raise RuntimeError("never")
        return super().__getattribute__(name)

class Nameless(Exception, metaclass=WithoutName):
    pass

def nameless():
    raise Nameless("hello")

def crashing():
    os.kill(os.getpid(), signal.SIGSEGV)

def forking():
    if not os.fork():
        time.sleep(60)
    os._exit(0)

def long():
    Path("pid").write_text(str(os.getpid()))
    time.sleep(60)
"""


@pytest.mark.parametrize(
    ("model", "says"),
    [
        ("in_silence", "with exit code 0 before it was done"),
        ("with_a_code", "with exit code 3 before it was done"),
        ("closing", "with exit code 1"),
        ("crashing", "by SIGSEGV"),
        ("forking", "with exit code 0"),
    ],
)
def test_a_factory_that_ends_the_process_is_told(model: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "ends.py").write_text(ENDS)
    done = hwprof("layers", "--model", f"ends:{model}", cwd=tmp_path)
    assert done.returncode == 1 and done.stdout == "", done
    last = done.stderr.splitlines()[-1]
    assert last.startswith("hwprof: the process of the model ended") and says in last


def test_how_a_factory_ended_is_known_to_who_ignores_the_end_of_children(tmp_path: Path) -> None:
    (tmp_path / "ends.py").write_text(ENDS)
    code = (
        "import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); os.execv(sys.executable, sys.argv[1:])"
    )
    command = [sys.executable, "-c", code, sys.executable, "-m", "hwprof", "layers", "--model", "ends:crashing"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "by SIGSEGV" in done.stderr


@pytest.mark.parametrize("model", ["without_streams", "closing_streams", "printing", "leaving_the_session"])
def test_whatever_a_factory_does_to_its_process_the_table_comes(model: str, tmp_path: Path) -> None:
    (tmp_path / "ends.py").write_text(ENDS)
    done = hwprof("layers", "--model", f"ends:{model}", "--format", "json", cwd=tmp_path)
    assert done.returncode == 0 and json.loads(done.stdout)[0]["type"] == "Linear", done
    assert all(one.isprintable() for one in done.stderr.replace("\n", ""))
    assert ("[2J forged" in done.stderr) == ("x" * 10_000 in done.stderr.replace("\n", "")) == (model == "printing")
    if model == "leaving_the_session":
        assert gone_soon(int((tmp_path / "pid").read_text()))


def test_an_interruption_of_the_factorys_own_is_none(tmp_path: Path) -> None:
    (tmp_path / "ends.py").write_text(ENDS)
    done = hwprof("layers", "--model", "ends:interrupting", cwd=tmp_path)
    assert done.returncode == 1 and "KeyboardInterrupt: mine" in done.stderr


def test_an_exception_whose_type_is_hostile_is_told(tmp_path: Path) -> None:
    (tmp_path / "ends.py").write_text(ENDS)
    done = hwprof("layers", "--model", "ends:nameless", cwd=tmp_path)
    assert done.returncode == 1 and "ends:nameless() fails: Nameless: hello" in done.stderr


@pytest.mark.parametrize(("number", "says"), [(signal.SIGTERM, "ended by SIGTERM"), (signal.SIGINT, "interrupted")])
def test_layers_end_with_one_line_and_nobody_is_left(number: signal.Signals, says: str, tmp_path: Path) -> None:
    (tmp_path / "ends.py").write_text(ENDS)
    with start_hwprof("layers", "--model", "ends:long", cwd=tmp_path) as process:
        copy = tmp_path / "pid"
        while not (copy.exists() and copy.read_text()):
            assert process.poll() is None
            time.sleep(0.02)
        for pid in (int(copy.read_text()), process.pid):  # as a terminal does it
            os.kill(pid, number)
        _, complaints = process.communicate()
    assert (process.returncode, messages(complaints)) == (128 + number, [f"hwprof: {says}"])
    assert not alive(int(copy.read_text()))


def test_models_lists_ours_first(tmp_path: Path) -> None:
    lines = [line.split() for line in hwprof("models", cwd=tmp_path).stdout.splitlines()]
    assert lines[0] == ["yolov7", "detect"]
    if ["yolov8n-seg", "segment"] not in lines:
        require_module("ultralytics")
    listed = json.loads(hwprof("models", "--format", "json", cwd=tmp_path).stdout)
    assert [[one["name"], one["task"]] for one in listed] == lines


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["colect"], "Did you mean 'collect'?"),
        (["collect", "--modl", "x"], "--model"),
        (["report"], "hwprof collect"),
        (["report", "nowhere"], "neither such a folder here nor a run of that name"),
        (["open"], "hwprof collect"),
        (["layers", "--model", "yolov77"], "yolov7"),
    ],
)
def test_bad_usage_is_one_line_and_exit_code_2(arguments: list[str], says: str, tmp_path: Path) -> None:
    done = hwprof(*arguments, cwd=tmp_path)
    assert done.returncode == 2, (done.stdout, done.stderr)
    assert len(done.stderr.strip().splitlines()) == 1
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_a_command_s_output_may_be_cut_off(tmp_path: Path) -> None:
    """``hwprof models | head -1`` ends quietly."""
    command = f"{sys.executable} -m hwprof models | head -1"
    done = subprocess.run(command, shell=True, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["yolov7", "detect"]
    assert done.stderr == ""
