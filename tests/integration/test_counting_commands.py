"""``hwprof events``, and ``hwprof collect`` with --events, --counters and --user-only, through the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hwprof.hardware.catalogue import microarchitectures
from hwprof.hardware.machine import describe
from hwprof.run.directory import RunDirectory
from tests.support.command import hwprof
from tests.support.papi import require_papi
from tests.support.requirements import require_module

SMALL = ("collect", "--model", "yolov8n", "--imgsz", "64", "--iterations", "2", "--warmup", "1", "--passes", "measure",
         "--no-instrumented")  # fmt: skip


@pytest.mark.parametrize("columns", [80, 120])
def test_events_of_this_machine_fit_and_say_what_is_wrong(columns: int, tmp_path: Path) -> None:
    done = hwprof("events", cwd=tmp_path, columns=columns)
    assert done.returncode == 0, done.stderr
    assert max(map(len, done.stdout.splitlines())) <= columns
    assert "cycles per instruction" in done.stdout and "task-clock" in done.stdout
    if not describe().has_core_pmu:
        head = " ".join(done.stdout.split("cpi", 1)[0].split())
        assert "not available: " in head and "Try: " in head
        assert "no instructions" in done.stdout
        assert "counter instrumented" in " ".join(done.stdout.split()), "what counts all the same, or why not"


def test_events_as_json_agree_with_doctor(tmp_path: Path) -> None:
    listed = json.loads(hwprof("events", "--all", "--format", "json", cwd=tmp_path).stdout)
    assert listed["schema_version"] == 1
    assert {event["name"] for event in listed["events"]} >= {"cycles", "task-clock"}
    findings = json.loads(hwprof("doctor", "--format", "json", cwd=tmp_path).stdout)["findings"]
    (perf,) = [finding for finding in findings if finding["name"] == "perf"]
    by_name = {event["name"]: event for event in listed["events"]}
    for name in (*perf["detail"]["hardware"], *perf["detail"]["software"]):
        assert by_name[name]["unavailable"] is None, name
    for name in perf["detail"]["unavailable"]:
        assert name not in by_name or by_name[name]["unavailable"]["reason"], name


def test_names_choose_what_is_listed(tmp_path: Path) -> None:
    listed = json.loads(hwprof("events", "branch,ipc", "page-faults", "--format", "json", cwd=tmp_path).stdout)
    assert [metric["name"] for metric in listed["metrics"]] == ["branch_mpki", "branch_miss_ratio", "ipc"]


@pytest.mark.parametrize("processor", [kind.id for kind in microarchitectures()])
def test_every_known_processor_can_be_looked_at(processor: str, tmp_path: Path) -> None:
    done = hwprof("events", "--processor", processor, "cpi", "cache", cwd=tmp_path, columns=80)
    assert done.returncode == 0, done.stderr
    assert processor in done.stdout and "not from this machine" in done.stdout
    assert "cache" in done.stdout.splitlines()
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_known_processors_are_listed(tmp_path: Path) -> None:
    names = [line.split()[0] for line in hwprof("events", "--list", cwd=tmp_path).stdout.splitlines()]
    assert names == [kind.id for kind in microarchitectures()]
    assert list(json.loads(hwprof("events", "--list", "--format", "json", cwd=tmp_path).stdout)) == names


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["events", "cylces"], "Try: cycles"),
        (["events", "--processor", "zen"], "hwprof events --list"),
        (["events", "cpu/event=1"], "write it like perf does"),
        (["collect", "--events", "cylces"], "Try: cycles"),
        (["collect", "--events", "cycles:p"], "modifier"),
        (["collect", "--events", "PAPI_TOT_CYC"], "--counters papi"),
        (["collect", "--events", ","], "empty"),
        (["collect", "--counters", "prf"], "Try: one of auto"),
        (["collect", "--counters", "perf", "--no-perf"], "contradict"),
    ],
)
def test_bad_names_fail_before_anything_is_measured(arguments: list[str], says: str, tmp_path: Path) -> None:
    done = hwprof(*arguments, cwd=tmp_path)
    assert done.returncode == 2, (done.stdout, done.stderr)
    assert len(done.stderr.strip().splitlines()) == 1
    assert says in done.stderr
    assert not (tmp_path / "results").exists()


def test_a_counter_that_does_not_work_is_an_error_with_its_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAPI_LIBRARY", "/nowhere/libpapi.so")
    done = hwprof("collect", "--counters", "papi", cwd=tmp_path)
    assert done.returncode == 1, (done.stdout, done.stderr)
    assert done.stderr.startswith("hwprof: papi does not work here: ")
    assert not (tmp_path / "results").exists()


def test_chosen_events_reach_the_collector(tmp_path: Path) -> None:
    require_module("torch")
    require_module("ultralytics")
    done = hwprof(*SMALL, "--events", "branch,cycles:u", "--user-only", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (record,) = RunDirectory.latest(tmp_path / "results").manifest.passes
    (perf,) = [said for said in record.collectors if said.name == "perf"]
    asked = {*perf.detail["hardware"], *perf.detail["unavailable"]}
    assert asked >= {"branches", "branch-misses", "instructions", "cycles:u"}
    assert not asked & {"fp_ret_sse_avx_ops.all", "slots"}
    assert perf.detail["kernel"] is False
    assert "papi" not in {said.name for said in record.collectors}


def test_two_counters_count_side_by_side(tmp_path: Path) -> None:
    require_module("torch")
    require_module("ultralytics")
    require_papi()
    done = hwprof(*SMALL, "--counters", "perf,papi", "--events", "cpi", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    run = RunDirectory.latest(tmp_path / "results")
    (record,) = run.manifest.passes
    states = {said.name: said.state for said in record.collectors}
    assert (states["perf"], states["papi"]) == ("ran", "ran")
    assert {"task-clock", "perf::TASK-CLOCK"} <= {event.name for event in record.events}
