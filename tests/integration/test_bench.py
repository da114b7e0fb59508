"""``hwprof bench``: real models, pyperf's own processes, and what is left when somebody ends it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from hwprof.bench import process as of_a_case
from hwprof.bench.samples import LARGEST_BYTES, samples_in
from hwprof.bench.store import Store
from tests.support.command import TESTS_MODELS, command_line, hwprof
from tests.support.models.remedies import WITHOUT_S
from tests.support.requirements import require_module

QUICK = ("--processes", "2", "--values", "2", "--min-time", "0.01", "--no-peaks")
LONG = ("--processes", "1", "--values", "100", "--min-time", "1", "--no-peaks")
OWN = ("--models", "tests.support.models.remedies:factory")


@pytest.fixture(autouse=True)
def requirements() -> None:
    require_module("torch")
    require_module("pyperf")


def the_store(place: Path) -> Store:
    (folder,) = (place / "results").glob("bench-*")
    return Store.open(folder)


def test_a_model_of_known_time(tmp_path: Path) -> None:
    done = hwprof(
        "bench", *OWN, "--variants", "eager,active_wait", *QUICK, "--format", "json",
        cwd=tmp_path, environment=TESTS_MODELS,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    eager, waiting = json.loads(done.stdout)["rows"]
    assert WITHOUT_S <= eager["forward_ns"] / 1e9 < 1.2 * WITHOUT_S
    assert 1.2 < waiting["times_as_fast"] < 1.45, "it sleeps three quarters of the time"
    store = the_store(tmp_path)
    import pyperf

    suite = pyperf.BenchmarkSuite.load(str(store.path / "pyperf.json"))
    for one, row in zip(suite.get_benchmarks(), (eager, waiting), strict=True):
        assert one.median() * 1e9 == pytest.approx(row["forward_ns"], rel=0.1)
        assert one.get_nvalue() == 4 and one.get_metadata()["unit"] == "second"
    for one in store.results():
        samples = samples_in(store.folder_of(one.case))
        assert one.forward is not None and len(samples) == 2
        assert sum(len(each.inference_ns) for each in samples) == one.forward.number
    compared = subprocess.run(
        [*command_line()[:1], "-m", "pyperf", "compare_to", *[str(store.path / "pyperf.json")] * 2],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "not significant" in compared.stdout


def test_joules_of_a_meter_of_known_power(tmp_path: Path) -> None:
    """At 40 W an image takes as many joules as its time at 40 W."""
    (tmp_path / "meter.py").write_text(
        "import time\nwhile True:\n    print(f'{time.time():.6f} 40.0', flush=True)\n    time.sleep(0.01)\n"
    )
    command = f"{sys.executable} meter.py"
    done = hwprof(
        "bench", *OWN, *QUICK, "--min-time", "0.3", "--power-command", command, "--format", "json",
        cwd=tmp_path, environment=TESTS_MODELS,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)["rows"]
    assert row["meter"] == "meter" and row["watts"] == pytest.approx(40, rel=0.01)
    assert row["joules_per_forward"] == pytest.approx(40 / row["forwards_per_s"], rel=0.05)
    assert 0 < row["joules_error"] < 0.2 * row["joules_per_forward"] and row["joules_per_image"] is None
    (result,) = the_store(tmp_path).results()
    assert not (the_store(tmp_path).folder_of(result.case) / "power_meter").exists()
    for option in ("--power-file", "--power-command"):
        refused = hwprof("bench", *OWN, option, "no such", cwd=tmp_path, environment=TESTS_MODELS)
        assert refused.returncode == 2 and "there is no" in refused.stderr, refused.stderr


def test_yolo_by_size_with_its_flops(tmp_path: Path) -> None:
    require_module("ultralytics")
    wanted = ("--models", "yolov8n", "--imgsz", "64,96", "--variants", "eager,channels_last+bfloat16,int8")
    done = hwprof("bench", *wanted, *QUICK, cwd=tmp_path, timeout_s=600)
    assert done.returncode == 0, done.stderr
    store = the_store(tmp_path)
    eager, changed, refused, larger, *_ = store.results()
    assert refused.failure is not None and "no Linear layers" in refused.failure.message
    assert "not measured: yolov8n int8" in done.stdout and "3.15" in (store.path / "bench.md").read_text()
    assert eager.model is not None and larger.model is not None and eager.model.record.parameters == 3_151_904
    assert eager.gflops is not None and larger.gflops is not None and larger.gflops > 1.5 * eager.gflops
    assert changed.model is not None and changed.model.record.variant is not None
    assert (store.path / "bench.html").read_text().count("<tr>") == 5
    assert (store.path / "bench.svg").read_text().startswith("<svg")


def test_one_that_is_killed_goes_on_with_each_case_once(tmp_path: Path) -> None:
    arguments = ("bench", *OWN, "--threads", "1,2", "--variants", "eager,active_wait", *QUICK)
    process = subprocess.Popen(
        command_line(*arguments), cwd=tmp_path, env=os.environ | TESTS_MODELS,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    end_s = time.monotonic() + 120
    while not list(tmp_path.glob("results/bench-*/cases/*/result.json")):
        assert time.monotonic() < end_s and process.poll() is None
        time.sleep(0.1)
    time.sleep(0.5)  # into the next one
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    store = the_store(tmp_path)
    before = {one.key: msgspec.json.encode(one) for one in store.results()}
    assert 1 <= len(before) < 4 and not processes_of(store.path)
    done = hwprof("bench", "--resume", str(store.path), "--format", "json", cwd=tmp_path, environment=TESTS_MODELS)
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)["rows"]
    assert sorted((row["variant"], row["threads"]) for row in rows) == [
        ("active_wait", 1), ("active_wait", 2), ("eager", 1), ("eager", 2),
    ]  # fmt: skip
    after = {one.key: msgspec.json.encode(one) for one in store.results()}
    assert before.items() <= after.items() and len(after) == 4


def processes_of(folder: Path) -> list[str]:
    """Whose command lines name it, a second later: the kernel ends them one after the other."""
    time.sleep(1)
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            text = file.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if str(folder) in text:
            found.append(text)
    return found


def test_ctrl_c_says_how_to_go_on(tmp_path: Path) -> None:
    process = subprocess.Popen(
        command_line("bench", *OWN, "--threads", "1,2", *LONG), cwd=tmp_path, env=os.environ | TESTS_MODELS,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    end_s = time.monotonic() + 120
    while not list(tmp_path.glob("results/bench-*/cases/*/case.json")):
        assert time.monotonic() < end_s and process.poll() is None
        time.sleep(0.1)
    time.sleep(3)  # into its values, with all that hwprof needs imported
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=10)
    assert process.returncode == 130 and "hwprof bench --resume" in told and "Traceback" not in told
    assert not processes_of(the_store(tmp_path).path)


HOSTILE = """
import atexit, os, shutil, sys, threading, time
import torch
class Does(torch.nn.Linear):
    def __init__(self, does):
        super().__init__(3, 2)
        self.does, self.calls = does, 0
    def forward(self, x):
        self.calls += 1
        if self.calls == 3:
            self.does()
        return super().forward(x)
def plain(): return torch.nn.Linear(3, 2)
def thread(): return Does(lambda: threading.Thread(target=lambda: time.sleep(300)).start())
def at_exit(): return Does(lambda: atexit.register(time.sleep, 300))
def forking(): return Does(os.fork)
def no_output(): return Does(lambda: setattr(sys, "stdout", None))
def removing(): return Does(lambda: shutil.rmtree(sys.argv[-1]))
def nesting(): return Does(lambda: open(sys.argv[-1] + "/model.json", "w").write("[" * 200_000 + "]" * 200_000))
"""


def test_what_a_model_does_is_its_cases_alone(tmp_path: Path) -> None:
    """A thread that goes on, something to do at exit, a copy that comes back, an output that is gone: measured all the
    same; one whose case's folder is gone, or has a file that nobody can read, is a row, and the next is measured."""
    (tmp_path / "mine.py").write_text(HOSTILE)
    names = ("thread", "at_exit", "forking", "no_output", "removing", "nesting", "plain")
    began_s = time.monotonic()
    done = hwprof(
        "bench", "--models", ",".join(f"mine:{name}" for name in names), "--input-shape", "1,3", "--no-peaks",
        "--processes", "1", "--values", "1", "--min-time", "0.001", "--threads", "1", "--format", "json",
        cwd=tmp_path, timeout_s=200,
    )  # fmt: skip
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr
    assert time.monotonic() - began_s < 120, "nobody waits for what is left"
    found = {row["model"]: row for row in json.loads(done.stdout)["rows"]}
    assert [name for name in names if found[f"mine:{name}"]["failure"]] == ["removing", "nesting"]
    assert not processes_of(the_store(tmp_path).path)


def test_what_a_model_prints_without_end_is_cut_and_its_last_words_are_the_reason(tmp_path: Path) -> None:
    prints = "for _ in range(80): os.write(1, b'x' * (1 << 20))\nos.write(1, b'\\nno more\\n'); sys.exit(3)"
    command = [sys.executable, "-c", f"import os, sys\n{prints}"]
    status = of_a_case._status(command, tmp_path, dict(os.environ), None)
    assert status == (3, "no more")
    assert (tmp_path / "log.txt").stat().st_size < LARGEST_BYTES
    assert "MB of what the model or its tools printed were dropped" in (tmp_path / "log.txt").read_text()


def test_a_batch_has_as_many_images_as_it_says(tmp_path: Path) -> None:
    require_module("ultralytics")
    models = ("--models", "yolov5n", "--imgsz", "64", "--batch", "2,5")
    quick = ("--processes", "1", "--values", "1", "--min-time", "0.01", "--no-peaks", "--threads", "1")
    done = hwprof("bench", *models, *quick, "--format", "json", cwd=tmp_path)
    two, five = json.loads(done.stdout)["rows"]
    assert (two["batch"], five["batch"]) == (2, 5) and five["gflops"] == pytest.approx(2.5 * two["gflops"])
    (result,) = [one for one in the_store(tmp_path).results() if one.case.workload.batch == 5]
    assert result.model is not None and result.model.images == 5 and result.model.forwards == 1
    assert "repeated" in " ".join(result.model.record.notes)


def test_files_of_a_bench_that_are_damaged_cost_no_table(tmp_path: Path) -> None:
    quick = ("--processes", "1", "--values", "1", "--min-time", "0.01", "--no-peaks", "--threads", "1,2")
    done = hwprof("bench", *OWN, *quick, cwd=tmp_path, environment=TESTS_MODELS)
    assert done.returncode == 0, done.stderr
    store = the_store(tmp_path)
    deep, large = [store.folder_of(case) / "pyperf.json" for case in store.plan.cases]
    deep.write_text("[" * 200_000)
    os.truncate(large, 20 << 30)
    again = hwprof("bench", "--resume", str(store.path), cwd=tmp_path, environment=TESTS_MODELS)
    assert again.returncode == 0 and "forwards/s" in again.stdout, again.stderr
    result = store.folder_of(store.plan.cases[0]) / "result.json"
    known = json.loads(result.read_text())
    known["model"]["macs"] = 10**400
    result.write_text(json.dumps(known))
    assert [one.key for one in store.left()] == [store.plan.cases[0].key], "it is done again"


def test_models_of_both_kinds_stand_side_by_side(tmp_path: Path) -> None:
    require_module("ultralytics")
    models = ("--models", "tests.support.models.remedies:factory,yolov8n", "--imgsz", "64", "--batch", "2")
    quick = ("--processes", "1", "--values", "1", "--min-time", "0.01", "--no-peaks", "--threads", "1")
    done = hwprof(
        "bench", *models, *quick, "--variants", "eager,channels_last", "--format", "json",
        cwd=tmp_path, environment=TESTS_MODELS,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)["rows"]
    boxes = next(row["boxes"] for row in rows if row["model"] == "yolov8n" and row["variant"] == "channels_last")
    assert boxes["without"] >= 5 and boxes["matched"] == boxes["without"] == boxes["found"]
    store = the_store(tmp_path)
    assert (store.path / "bench.svg").exists() and (store.path / "bench.html").exists()
    for file in store.path.glob("cases/*/pyperf.json"):
        file.write_text("{}")
    again = hwprof("bench", "--resume", str(store.path), cwd=tmp_path, environment=TESTS_MODELS)
    assert again.returncode == 0 and "yolov8n" in again.stdout, again.stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--models", "yolov99"), "there is no model"),
        (("--models", ","), "--models names nothing"),
        (("--imgsz", "640,huge"), "--imgsz huge: whole numbers"),
        (("--batch", "0"), "--batch 0: whole numbers"),
        (("--variants", "magic"), "there is no remedy or variant magic"),
        (("--variants", "int8+bfloat16"), "do not go together"),
        (("--threads", "99999"), "--threads 99999"),
        (("--resume", "nowhere"), "nowhere"),
        (("--resume", "nowhere", "--imgsz", "64"), "--imgsz: a bench that goes on"),
        (("--models", "tests.support.models.remedies:factory", "--variants", "unfused"), "only for YOLO pipelines"),
        (("--models", "tests.support.models.remedies:factory", "--batch", "1,2"), "--batch: only for YOLO pipelines"),
        (("--models", "tests.support.models.remedies:factory", "--imgsz", "64"), "--imgsz: only for YOLO pipelines"),
        (("--variants", "channels-last"), "did you mean channels_last?"),
        (("--variants", "bf16"), "did you mean bfloat16?"),
        (("--variants", "eager,threads=2", "--threads", "1"), "threads both as a variant and as --threads"),
        (("--store", "nope://x"), "nope://x: Protocol not known"),
    ],
)
def test_what_it_cannot_do_is_a_line(tmp_path: Path, arguments: tuple[str, ...], told: str) -> None:
    done = hwprof("bench", *arguments, cwd=tmp_path)
    assert done.returncode == 2 and told in done.stderr and "Traceback" not in done.stderr
    assert not (tmp_path / "results").exists()
