"""Power meters that are programs and files: what they say, what goes wrong, and that nothing of them stays."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from collectors.power_meter.collector import PowerMeterCollector, PowerMeterDetail
from hwprof.collector.contract import Collected, NoteKind, PassContext
from hwprof.errors import HwprofError
from hwprof.run.details import EnergyDetail
from tests.support.command import TESTS_MODELS, collect, start_hwprof
from tests.support.processes import alive, gone_soon
from tests.support.reported import texts

PRINTS = "import time\nwhile True:\n    print({line}, flush=True)\n    time.sleep(0.02)\n"
TIMED = PRINTS.format(line="f'{time.time():.6f} 40.0'")
UNTIMED = PRINTS.format(line="40.0")


def program(folder: Path, text: str) -> str:
    script = folder / "meter.py"
    script.write_text(text)
    return f"{sys.executable} -u '{script}'"


def metered(folder: Path, seconds: float = 0.6, **options: Any) -> Collected:
    collector = PowerMeterCollector()
    collector.start(PassContext("measure", os.getpid(), os.getpid(), folder, options))
    time.sleep(seconds)
    return collector.stop()


@pytest.mark.parametrize(("text", "timed"), [(TIMED, True), (UNTIMED, False)], ids=["timed", "untimed"])
def test_a_program_s_watts_are_joules_on_the_clock(text: str, timed: bool, tmp_path: Path) -> None:
    before_ns = time.monotonic_ns()
    collected = metered(tmp_path, power_command=program(tmp_path, text))
    series, detail = collected.tables["series"], collected.detail
    assert isinstance(detail, PowerMeterDetail) and detail.readings == series.height >= 5
    assert before_ns <= series["time_ns"][0] and series["time_ns"][-1] <= time.monotonic_ns()
    seconds = (series["time_ns"][-1] - series["time_ns"][0]) / 1e9
    assert series["value"].to_list()[0] == 0 and series["value"][-1] == pytest.approx(40 * seconds)
    assert len(collected.clocks) == timed
    assert detail.period_ms is not None and detail.late_ms["meter"] == pytest.approx(
        collected.clocks[0].error_ns / 1e6 if timed else detail.period_ms / 2
    )


def test_a_file_s_readings_of_the_pass_count_and_no_others(tmp_path: Path) -> None:
    log = tmp_path / "watts.csv"
    log.write_text("time,watts\n")
    collector = PowerMeterCollector()
    now_s = time.time()
    with log.open("a") as file:
        file.write(f"{now_s - 100},1000\n")
        collector.start(PassContext("measure", 1, 1, tmp_path, {"power_file": str(log)}))
        begin_s = time.time()
        time.sleep(0.35)
        for n in range(3):
            at = datetime.fromtimestamp(begin_s + 0.1 * (n + 1), UTC).isoformat()
            file.write(f"{at},{30 + 10 * n}\n")
        file.write("7\n")  # no time
        file.write(f"{now_s + 1000},1000\n")
    collected = collector.stop()
    assert collected.tables["series"]["value"].to_list() == pytest.approx([0, 3.5, 8.0], abs=1e-3)  # of 40 W: 25 µs
    assert "1 lines are no readings" in texts(collected.notes)[-1]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("import time; time.sleep(60)", "0 readings"),
        ("print(40)", "1 readings during the pass: the program ended, status 0"),
        ("print('abc')", "0 readings during the pass, none in 1 line: the program ended, status 0"),
        ("import sys; sys.exit(3)", "0 readings during the pass: the program ended, status 3"),
        ("1 / 0", "0 readings during the pass: the program ended, status 1: ZeroDivisionError: division by zero"),
        ("while True: __import__('sys').stderr.write('x' * 10000)", "0 readings"),
        ("while True: print('x' * 10000)", "0 readings"),
        ("import signal, time; signal.signal(15, signal.SIG_IGN); print(4, flush=True); time.sleep(60)", "1 readings"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSTOP)", "0 readings"),
        ("import os; os.write(1, bytes(range(256)) * 100)", "0 readings"),
    ],
    ids=["silent", "once", "no number", "fails", "raises", "floods errors", "floods", "stays", "stopped", "binary"],
)
def test_a_meter_that_says_nothing_is_told_and_gone(text: str, told: str, tmp_path: Path) -> None:
    collector = PowerMeterCollector()
    collector.start(PassContext("measure", 1, 1, tmp_path, {"power_command": program(tmp_path, text)}))
    assert collector._program is not None and collector._program._process is not None
    pid = collector._program._process.pid
    time.sleep(0.5)
    with pytest.raises(HwprofError, match=re.escape(told)):
        collector.stop()
    assert not Path(f"/proc/{pid}").exists()


SLEEPS = "import subprocess; child = subprocess.Popen(['sleep', '600'], start_new_session=True)\n"


def test_nor_does_what_it_has_started_stay(tmp_path: Path) -> None:
    text = SLEEPS + "open('child', 'w').write(str(child.pid))\n" + UNTIMED
    with contextlib.chdir(tmp_path):
        metered(tmp_path, power_command=program(tmp_path, text))
    assert gone_soon(int((tmp_path / "child").read_text()))


def test_it_ends_with_a_killed_command(tmp_path: Path) -> None:
    text = (
        "import os, subprocess, time\n"
        "left = [subprocess.Popen(['sleep', '600'], start_new_session=new) for new in (False, True)]\n"
        "open('meter', 'w').write(' '.join(map(str, [os.getpid(), *(one.pid for one in left)])))\n"
        "time.sleep(600)\n"
    )
    options = ("--passes", "measure", "--iterations", "100000", "--power-command", program(tmp_path, text))
    model = ("--model", "tests.support.models.zoo:encoder")
    process = start_hwprof("collect", *model, *options, cwd=tmp_path, environment=TESTS_MODELS)
    told = tmp_path / "meter"
    while not (told.exists() and told.read_text()):
        assert process.poll() is None
        time.sleep(0.02)
    time.sleep(0.5)  # it lives on beside the pass: no thread that is gone has started it
    pids = [int(word) for word in told.read_text().split()]
    assert all(alive(pid) for pid in pids)
    process.kill()
    process.communicate(timeout=60)
    assert [pid for pid in pids if not gone_soon(pid)] == []


def test_what_is_lost_is_told(tmp_path: Path) -> None:
    text = "for n in range(20):\n    print(40 if n % 2 else 'lost', flush=True)\n    __import__('time').sleep(0.01)\n"
    collected = metered(tmp_path, power_command=program(tmp_path, text))
    told = [note for note in collected.notes if note.kind is NoteKind.INCOMPLETE]
    assert len(told) == 2
    assert "ended before the pass, status 0" in texts(told)[0] and "9 lines are no readings" in texts(told)[1]


def test_the_rest_of_a_line_that_is_too_long_is_no_reading(tmp_path: Path) -> None:
    text = (
        "import os, time\nfor n in range(12):\n"
        "    os.write(1, b'40\\n')\n    os.write(1, b'x' * 5000); time.sleep(0.03)\n"
        "    os.write(1, b'y' * 5000); time.sleep(0.01)\n    os.write(1, b' 777\\n')\n"
    )
    collected = metered(tmp_path, 1.0, power_command=program(tmp_path, text))
    series = collected.tables["series"]
    seconds = (series["time_ns"][-1] - series["time_ns"][0]) / 1e9
    assert series["value"][-1] == pytest.approx(40 * seconds), "and not 777 W in between"
    assert any("12 lines left out" in note for note in texts(collected.notes))


@pytest.mark.parametrize(("off_s", "told"), [(2, "2.0 s ahead of"), (-2, "2.0 s behind"), (0.1, None)])
def test_a_meter_whose_clock_is_off_says_so(off_s: float, told: str | None, tmp_path: Path) -> None:
    line = f"f'{{time.time() + {off_s}:.6f}} 40.0'"
    collected = metered(tmp_path, 2.8, power_command=program(tmp_path, PRINTS.format(line=line)))
    found = [text for text in texts(collected.notes) if "the meter's times" in text]
    assert isinstance(collected.detail, PowerMeterDetail)
    if told is None:
        assert not found and collected.detail.late_ms["meter"] < 50
    else:
        assert told in found[0] and collected.detail.late_ms["meter"] > 1900


def test_readings_of_another_hour_are_told_as_such(tmp_path: Path) -> None:
    text = PRINTS.format(line="f'{time.time() + 3600:.6f} 40.0'")
    with pytest.raises(HwprofError, match=r"0 readings during the pass, \d+ before or after it"):
        metered(tmp_path, power_command=program(tmp_path, text))


def test_a_run_has_the_meter_s_energy(tmp_path: Path) -> None:
    command = program(tmp_path, TIMED)
    options = ("--passes", "measure", "--iterations", "5", "--power-command", command)
    run = collect(tmp_path, "--model", "tests.support.models.zoo:encoder", *options, environment=TESTS_MODELS)
    assert (run.path / "energy.csv").read_text().startswith("timestamp;tag;duration;meter;meter_error")
    names = set(run.read("series")["name"])
    assert "energy/meter" in names
    (record,) = [one for one in run.manifest.passes[0].collectors if one.name == "power_meter"]
    detail = record.detail_as(EnergyDetail)
    assert detail is not None and detail.of_power == ["meter"], "its joules have the errors of one that reads watts"
