"""Some cases of each kind, and that the rules that they are held to can be broken."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from scripts.faults.__main__ import KINDS, carried_out, kind_of, ready_for
from scripts.faults.case import Case, Outcome
from scripts.faults.disks import may_mount, slow_environment, small_disk
from scripts.faults.processor_waits import ProcessorWaits
from scripts.faults.rules import broken, contents, never_ended, runs_missing
from scripts.faults.warm import Warm
from tests.support.requirements import missing, require_module

CASES = {
    "mutated_runs": 12,
    "checkpoints": 60,
    "sources": 40,
    "videos": 40,
    "surroundings": 16,
    "collects": 3,
    "starts": 1,
}
SEED = "test"


@pytest.mark.parametrize("name", KINDS)
def test_what_is_hostile_or_broken_breaks_no_rule(name: str, tmp_path: Path) -> None:
    require_module("torch")
    kind = kind_of(name)
    shared = kind.shared(tmp_path / "shared")
    with ready_for(kind) as ready:
        for number in range(CASES[name]):
            folder = tmp_path / str(number)
            folder.mkdir()
            case, outcomes, rules = carried_out(kind, f"{SEED}:{number}", folder, shared, ready)
            assert not rules, (number, case.what, outcomes, rules)


def ended(**changed: object) -> Outcome:
    found = Outcome(code=1, out="", err="hwprof: no", seconds=0.1, peak_bytes=1)
    for name, value in changed.items():
        setattr(found, name, value)
    return found


@pytest.mark.parametrize(
    ("outcome", "rule"),
    [
        (ended(code=3), "exit code 3"),
        (ended(code=134, err="hwprof: x"), "exit code 134"),
        (ended(timed_out=True), "it did not end"),
        (ended(err="hwprof: a\nhwprof: b"), "2 lines"),
        (ended(err=""), "0 lines"),
        (ended(code=0), "the exit code is 0"),
        (ended(err="hwprof: KeyError: 'a' (this is a defect of hwprof; --debug shows where)"), "this is a defect"),
        (ended(err="hwprof: \x1b[31m"), "on standard error"),
        (ended(out="a\rb"), "on standard output"),
        (ended(peak_bytes=1 << 40), "of memory"),
        (ended(left=["sleep 9"]), "left a process"),
        (ended(events=["os.system('x')"]), "did os.system"),
    ],
)
def test_each_rule_can_be_broken(outcome: Outcome, rule: str) -> None:
    assert [one for one in broken(Case("x", ()), outcome, {}, ()) if rule in one]


def test_who_dies_of_a_signal_before_a_run_begins_need_not_say_so() -> None:
    assert not list(broken(Case("x", (), codes=frozenset({129})), ended(code=129, err="", unheard=True), {}, ()))
    assert list(broken(Case("x", (), codes=frozenset({129})), ended(code=129, err="a\nb", unheard=True), {}, ()))


def test_time_is_too_long_without_what_was_waited_for_a_processor() -> None:
    """A process that sleeps is late; one that shares its processor with three others is not yet."""
    code = "import os, time; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
    sleeper, *busy = [
        subprocess.Popen([sys.executable, "-c", code + rest], start_new_session=True)
        for rest in ("time.sleep(60)", *["while True: pass"] * 4)
    ]
    looks = [ProcessorWaits(one.pid) for one in (sleeper, busy[0])]
    try:
        late = [False, False]
        deadline = time.monotonic() + 20
        while not all(late) and time.monotonic() < deadline:
            late = [was or look.too_long(2.0) for was, look in zip(late, looks, strict=True)]
            if late[0] and not late[1]:
                break
            time.sleep(0.05)
    finally:
        for one in (sleeper, *busy):
            one.kill()
            one.wait()
    assert late == [True, False]
    assert looks[1].seconds > 0.5 > looks[0].seconds
    assert looks[1].too_long(0.0), "it has a processor now and then"


def test_what_holds_breaks_none(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("a")
    before = contents([file, tmp_path / "none"])
    assert not list(broken(Case("x", ()), ended(), before, ()))
    assert list(broken(Case("x", ()), ended(), before, ["elsewhere"])) == ["wrote elsewhere"]
    file.write_text("b")
    assert list(broken(Case("x", ()), ended(), before, ())) == ["changed file"]


def test_what_a_copy_starts_leaves_and_runs_into_is_seen(tmp_path: Path) -> None:
    """Of a function that does what no reader of files does."""
    (tmp_path / "bad.py").write_text(
        "import os, subprocess, sys\n"
        "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        "open('made', 'w').close()\n"
    )
    with Warm("hwprof.cli.app") as warm:
        bad = Case("x", (str(tmp_path / "bad.py"),), call="execute", quiet=True)
        (outcome,) = warm.carry_out(bad, tmp_path)
        assert len(outcome.left) == 1 and Path(sys.executable).name in outcome.left[0]
        assert any(event.startswith("subprocess.Popen") for event in outcome.events)
        assert any("'made'" in event for event in outcome.events) and (tmp_path / "made").exists()
        case = Case("x", (str(tmp_path / "bad.py"),), call="wait", limit_s=0.5)
        assert warm.carry_out(case, tmp_path)[0].timed_out
        tight = Case("x", ("explain", "cpi"), limits={"RLIMIT_FSIZE": 1})
        assert warm.carry_out(tight, tmp_path)[0].code == 1


def test_who_has_no_run_is_missed(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "run.json").write_text("{}")
    assert not runs_missing(tmp_path, [ended(code=0), ended()])
    assert runs_missing(tmp_path, [ended(code=0), ended(code=0)]) == "1 runs of 2 that succeeded"


@pytest.mark.parametrize(
    ("code", "limits", "told"),
    [
        (1, {}, ["pass trace is said to be running"]),
        (137, {}, []),
        (1, {"RLIMIT_FSIZE": 1}, []),
    ],
)
def test_a_pass_that_still_runs_is_seen(tmp_path: Path, code: int, limits: dict[str, int], told: list[str]) -> None:
    (tmp_path / "2026").mkdir()
    passes = '{"passes": [{"name": "measure", "status": "completed"}, {"name": "trace", "status": "running"}]}'
    (tmp_path / "2026" / "run.json").write_text(passes)
    assert list(never_ended(tmp_path, Case("x", (), limits=limits), [ended(code=code)])) == told


def test_a_small_disk_is_full_and_a_slow_one_slow(tmp_path: Path) -> None:
    if not may_mount():
        missing("root, who may mount")
    small = Case("x", (), disk_bytes=1 << 14, slow_s=0.05)
    write = "import sys; file = open(sys.argv[1], 'wb', buffering=0); [file.write(bytes(1024)) for _ in range(9)]"
    with small_disk(small, tmp_path):
        place = tmp_path / "results"
        with pytest.raises(OSError, match="No space left"):
            (place / "much").write_bytes(bytes(1 << 20))
        (place / "much").unlink()
        begin = time.monotonic()
        environment = {**os.environ, **slow_environment(small)}
        subprocess.run([sys.executable, "-c", write, str(place / "slowly")], env=environment, check=True)
        assert time.monotonic() - begin > 9 * 0.05
    assert not list(place.iterdir())
