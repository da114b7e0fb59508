"""Stages' profiles: whose a call is, and who else may profile."""

from __future__ import annotations

import cProfile
import sys
from collections.abc import Iterator
from contextlib import suppress
from types import CodeType, FrameType, SimpleNamespace
from typing import Any

import pytest

from collectors.cprofile.calls import BUILTIN, Counted, Place, functions
from collectors.cprofile.collector import ACTIVE, CProfileCollector
from collectors.cprofile.stage_profiles import StageProfiles, active_profiler
from hwprof.errors import HwprofError

ONE_PLACE = sys.version_info < (3, 12)
"""Whether sys.setprofile and cProfile use the same: whoever comes last has it."""


def called() -> None: ...


def deep(level: int) -> None:
    if level:
        deep(level - 1)


def gives(values: int) -> Iterator[int]:
    yield from range(values)


def raises() -> None:
    raise ValueError


def work(times: int) -> None:
    for _ in range(times):
        called()
    deep(4)
    list(gives(3))
    with suppress(ValueError):
        raises()


def counts(profiles: StageProfiles, stage: str) -> dict[str, tuple[int, int]]:
    found = functions(profiles.by_stage[stage].getstats(), [])
    return {place.function: (counted.calls, counted.primitive_calls) for place, counted in found.items()}


def test_each_stage_has_its_own_calls_though_one_is_in_another() -> None:
    profiles = StageProfiles()
    for _ in range(2):
        with profiles.stage("load"):
            work(1)
        called()  # between stages
        with profiles.stage("postprocess"):
            work(2)
            with profiles.stage("nms"):
                work(7)
            called()
    assert not profiles.displaced and active_profiler() is None
    for stage, times in (("load", 1), ("nms", 7), ("postprocess", 3)):
        found = counts(profiles, stage)
        assert found["called"] == (2 * times, 2 * times), stage
        assert (found["deep"], found["raises"]) == ((10, 2), (2, 2)), "five calls, of which the first one is primitive"
        assert found["gives"] == (8, 8), "once a value, and once to its end"


def test_a_stage_that_fails_leaves_nobody_switched_on() -> None:
    profiles = StageProfiles()
    with pytest.raises(ValueError, match=r"^$"), profiles.stage("postprocess"), profiles.stage("nms"):
        raises()
    assert active_profiler() is None
    assert counts(profiles, "nms")["raises"] == (1, 1)


@pytest.fixture
def others_profiler() -> Iterator[list[str]]:
    """What a profiler of the model's sees of ``called``."""
    seen: list[str] = []
    yield seen
    sys.setprofile(None)


def test_a_profiler_that_the_model_sets_keeps_its_place(others_profiler: list[str]) -> None:
    def theirs(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code is called.__code__:
            others_profiler.append(event)

    profiles = StageProfiles()
    with profiles.stage("postprocess"), profiles.stage("nms"):
        called()
        sys.setprofile(theirs)
        called()
    assert sys.getprofile() is theirs
    called()
    with profiles.stage("save"):
        called()
    assert len(others_profiler) == 3
    assert profiles.displaced is ONE_PLACE
    if not ONE_PLACE:
        assert counts(profiles, "nms")["called"] == (2, 2) and counts(profiles, "save")["called"] == (1, 1)


@pytest.mark.skipif(not ONE_PLACE, reason="there a second cProfile raises")
def test_a_cprofile_of_the_model_s_goes_on_behind_the_stage() -> None:
    theirs, profiles = cProfile.Profile(), StageProfiles()
    with profiles.stage("inference"):
        theirs.enable()
        called()
    called()
    theirs.disable()
    (found,) = [one.callcount for one in theirs.getstats() if one.code is called.__code__]
    assert found == 2 and profiles.displaced


def test_no_iteration_begins_beside_another_profiler() -> None:
    theirs = cProfile.Profile()
    theirs.enable()
    try:
        with pytest.raises(HwprofError, match=ACTIVE), CProfileCollector().own_iteration():
            pass
        assert active_profiler() is not None
    finally:
        theirs.disable()


def test_a_second_cprofile_that_python_refuses_is_told_as_such() -> None:
    """From 3.12 on the model's own code gets this error."""
    with pytest.raises(HwprofError, match=ACTIVE), CProfileCollector().own_iteration():
        raise ValueError("Another profiling tool is already active")
    with pytest.raises(ValueError, match="of its own"), CProfileCollector().own_iteration():
        raise ValueError("of its own")


def test_where_tools_have_numbers_the_number_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """As from Python 3.12 on: no profiler of ``sys.setprofile`` is seen then."""
    tools: dict[int, str] = {}
    monkeypatch.setattr(sys, "monitoring", SimpleNamespace(PROFILER_ID=2, get_tool=tools.get), raising=False)
    profiles = StageProfiles()

    class Switched(cProfile.Profile):
        def enable(self, *_: Any, **__: Any) -> None:
            tools[2] = "cProfile"

        def disable(self) -> None:
            tools.pop(2)

    profiles.by_stage |= {"postprocess": Switched(), "nms": Switched()}
    with profiles.stage("postprocess"), profiles.stage("nms"):
        assert tools
    assert not profiles.displaced and not tools
    tools[2] = "another"
    with profiles.stage("save"):
        assert tools == {2: "another"}
    assert tools == {2: "another"}
    assert counts(profiles, "save") == {}


def entry(code: CodeType | str, calls: int, self_s: float, called: list[SimpleNamespace] | None = None) -> Any:
    return SimpleNamespace(
        code=code, callcount=calls, reccallcount=0, inlinetime=self_s, totaltime=self_s, calls=called
    )


def test_builtins_that_the_profiler_calls_are_the_profiler_s() -> None:
    hook = called.__code__.replace(co_filename="/hwprof/session/recorder.py", co_qualname="hook")
    model = called.__code__.replace(co_filename="/hwprof-models/net.py", co_qualname="forward")
    clock, lock, view = "<built-in method time.monotonic_ns>", "<method 'acquire' of 'lock' objects>", "<view>"
    entries = [
        entry(hook, 2, 0.5, [entry(clock, 4, 0.25), entry(lock, 1, 0.125), entry(model, 2, 1.0)]),
        entry(model, 2, 1.0, [entry(clock, 1, 0.0625), entry(view, 1, 0.5)]),
        entry(clock, 5, 0.3125),
        entry(lock, 1, 0.125),
        entry(view, 1, 0.5),
    ]
    found = functions(entries, ["/hwprof"])
    assert found[Place(clock, BUILTIN, 0, True)] == Counted(4, 4, 250_000_000, 250_000_000)
    assert found[Place(clock, BUILTIN, 0, False)] == Counted(1, 1, 62_500_000, 62_500_000)
    assert Place(lock, BUILTIN, 0, False) not in found
    assert found[Place(view, BUILTIN, 0, False)].calls == 1
    assert sum(one.self_ns for one in found.values()) == 2_437_500_000, "each time is somebody's"
