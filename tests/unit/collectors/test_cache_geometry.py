"""Which caches are simulated: what the user says, or the machine."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.instrumented import cache_model
from collectors.instrumented.cache_events import events
from collectors.instrumented.cache_geometry import Geometry, Level, choose, parse
from collectors.instrumented.collector import InstrumentedCollector
from hwprof.errors import UsageError
from hwprof.run.manifest import Cache

K, M = 1 << 10, 1 << 20

MACHINE = (
    Cache(1, "data", 32 * K, 8, 64),
    Cache(1, "instruction", 64 * K, 4, 64),
    Cache(2, "unified", M, 8, 64, 2),
    Cache(3, "unified", 30 * M, 20, 64, 12),
)


def test_what_is_given_and_the_rest_of_the_machine() -> None:
    geometry = choose(MACHINE, parse(" L1=48k/12, llc=32M/16 "))
    assert geometry.levels == (Level(48 * K, 12), Level(M, 8), Level(32 * M, 16))
    assert [level.sets for level in geometry.levels] == [64, 2048, 32768]
    assert str(geometry) == "l1=48K/12,l2=1M/8,llc=32M/16"
    assert geometry.given == ("l1", "llc")
    assert geometry.sharing == 12


def test_the_machine_itself() -> None:
    geometry = choose(MACHINE, {})
    assert str(geometry) == "l1=32K/8,l2=1M/8,llc=30M/20"
    assert geometry.levels[2].sets == 24576, "no power of two"
    assert geometry.given == ()


def test_a_machine_without_a_last_level_ends_at_l2() -> None:
    geometry = choose(MACHINE[:3], {})
    assert len(geometry.levels) == 2
    assert geometry.sharing == 2
    names = [event.full_name for event in events(geometry)]
    assert "cache-model.l2-misses" in names
    assert not any(".llc-" in name for name in names)
    memory = next(event for event in events(geometry) if event.full_name == "cache-model.memory-bytes")
    assert memory.weights().tolist() == [0, 0, 0, 0, 64, 0], "misses of L2, a line each"


def test_a_machine_that_describes_no_cache_needs_the_option() -> None:
    with pytest.raises(UsageError, match="does not describe this machine's l2") as raised:
        choose(MACHINE[:2], {})
    assert "--cache" in (raised.value.remedy or "")
    assert choose((), parse("l1=32K/8,l2=1M/8")).sharing == 1
    with pytest.raises(UsageError, match="l1"):
        choose((Cache(1, "data", 32 * K, None, 64), *MACHINE[2:]), {})


def test_another_line() -> None:
    geometry = choose(MACHINE, parse("l1=64K/4/128,l2=12M/12/128,llc=8M/16/128"))
    assert geometry.line_bytes == 128
    with pytest.raises(UsageError, match="lines of 64 and 128 bytes"):
        choose(MACHINE, parse("l1=64K/4/128"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "names no level"),
        ("48K/12", "is not LEVEL=SIZE/WAYS"),
        ("l1=48K", "is not LEVEL=SIZE/WAYS"),
        ("l1=48KB/12", "is not LEVEL=SIZE/WAYS"),
        ("l4=48K/12", "no level is called 'l4'"),
        ("l1=48K/12,L1=32K/8", "names l1 twice"),
        ("l1=48K/13", "no multiple of 13 ways of 64 bytes"),
        ("l1=48K/0", "no multiple of 0 ways"),
        ("l1=0K/8", "no multiple"),
        ("l1=48K/12/48", "a line is a power of two"),
        ("l1=64M/1/1048576", "a line is a power of two of 8 to 4096 bytes"),
        ("l1=99999999999G/12", "more than 16777216 lines"),
        ("llc=2G/16", "more than 16777216 lines"),
        (f"l1={'9' * 5000}/12", "is not LEVEL=SIZE/WAYS"),
    ],
)
def test_what_cannot_be_is_refused(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        parse(text)


levels = st.builds(
    lambda sets, ways, line: Level(sets * ways * line, ways, line),
    st.integers(1, 1 << 16),
    st.integers(1, 32),
    st.sampled_from([16, 64, 128]),
)


@given(levels, levels)
def test_what_is_printed_can_be_read(l1: Level, l2: Level) -> None:
    said = f"l1={l1}/{l1.line_bytes},l2={l2}/{l2.line_bytes}"
    assert parse(said) == {"l1": l1, "l2": l2}


def test_the_options_of_the_collector(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hwprof.hardware.machine.caches", lambda: MACHINE)
    assert cache_model.wanted({}) is None
    assert cache_model.wanted({"cache_model": True}) == choose(MACHINE, {})
    both: Geometry | None = cache_model.wanted({"cache": "l1=48K/12,l2=2M/16"})
    assert both is not None
    assert both.given == ("l1", "l2")
    with pytest.raises(UsageError, match="twice"):
        cache_model.wanted({"cache": "l1=48K/12,l1=32K/8"})


def test_simulated_caches_are_warmed_by_an_iteration_that_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hwprof.hardware.machine.caches", lambda: MACHINE)
    (plain,) = InstrumentedCollector().own_passes({})
    (simulating,) = InstrumentedCollector().own_passes({"cache_model": True})
    assert (plain.iterations, plain.alternate) == (1, False)
    assert (simulating.iterations, simulating.alternate) == (2, True)
    assert simulating.slowdown > 5 * plain.slowdown
    with pytest.raises(UsageError):
        InstrumentedCollector().own_passes({"cache": "nonsense"})
