"""A third party's collector that is broken in any way costs nobody else anything."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from hwprof.collector import conformance, registry
from hwprof.collector.contract import Availability
from hwprof.errors import HwprofError
from hwprof.interrupts import Interrupt
from tests.support.command import hwprof_here
from tests.support.fake_collectors import Bystander

DECLARATION = """
from hwprof.collector.declaration import Declaration, Place
DECLARATION = Declaration(name="{name}", summary="", implementation="{module}:Mine", place=Place.EXTERNAL)
"""
EXITS = "import sys\nsys.exit(7)\n"
EXITS_WHEN_MADE = """
import sys
from hwprof.collector.contract import Availability, Collected, Collector
class Mine(Collector):
    def __init__(self): {when_made}
    def availability(self): sys.exit(7)
    def start(self, context): ...
    def stop(self): return Collected()
"""
MODULES = {
    "exits_at_once": EXITS,
    "exits_later": DECLARATION.format(name="exits_later", module="exits_later_code"),
    "exits_later_code": EXITS,
    "exits_made": DECLARATION.format(name="exits_made", module="exits_made_code"),
    "exits_made_code": EXITS_WHEN_MADE.format(when_made="sys.exit(7)"),
    "exits_asked": DECLARATION.format(name="exits_asked", module="exits_asked_code"),
    "exits_asked_code": EXITS_WHEN_MADE.format(when_made="pass"),
    "misnamed": DECLARATION.format(name="two words", module="misnamed"),
}
BROKEN = ("exits_at_once", "exits_later", "exits_made", "exits_asked")


@pytest.fixture(autouse=True)
def registered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name, code in MODULES.items():
        (tmp_path / f"{name}.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    found = dict(registry._entry_points())
    entries = {name: f"{name}:DECLARATION" for name in BROKEN} | {"two words\x1b[m": "misnamed:DECLARATION"}
    found |= {name: EntryPoint(name, value, registry.GROUP) for name, value in entries.items()}
    with monkeypatch.context() as patched:
        _forget()
        patched.setattr(registry, "_entry_points", lambda: found)
        yield
    _forget()
    for name in MODULES:
        sys.modules.pop(name, None)


@pytest.mark.parametrize("name", BROKEN)
def test_the_suite_tells_in_a_line_what_is_wrong_with_a_broken_one(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert conformance.main([name]) == 1
    head, *failures = capsys.readouterr().out.splitlines()
    assert head == f"{name}: does not conform"
    assert failures and all("7" in line and line.startswith("  ") for line in failures)


def test_the_suite_refuses_a_name_that_no_collector_has(capsys: pytest.CaptureFixture[str]) -> None:
    assert conformance.main(["nosuch\x1b[m"]) == 2
    out, errors = capsys.readouterr()
    assert out == "" and errors.count("\n") == 1 and errors[:-1].isprintable()
    assert errors.startswith("hwprof: no collector is called 'nosuch") and "one of " in errors


def _forget() -> None:
    for cached in (registry.declaration, registry.declarations, registry.implementation):
        cached.cache_clear()


@pytest.mark.parametrize("name", BROKEN)
def test_a_collector_that_ends_the_process_is_broken(name: str) -> None:
    assert "perf" in [declared.name for declared in registry.declarations()]
    (found,) = registry.survey([name])
    assert found.availability.unavailable is not None
    assert found.availability.unavailable.reason == "it is broken: its code calls sys.exit(7)"


def test_a_source_that_is_not_installed_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    # undone here: after the fixture's own patch it would put that one's names back, for all tests that follow
    with (
        monkeypatch.context() as patched,
        pytest.raises(HwprofError, match=r"no collector is registered.*not installed.*pip install -e \."),
    ):
        patched.setattr(registry, "_entry_points", dict)
        registry.survey()


@pytest.mark.parametrize("name", BROKEN[:3])
def test_a_pass_meets_it_as_an_error(name: str) -> None:
    with pytest.raises(HwprofError, match=r"sys\.exit"):
        registry.create(name)


def test_a_name_that_is_none_is_told_by_doctor_alone() -> None:
    assert not [name for name in registry.names() if "two" in name]
    done = hwprof_here("doctor")
    assert done.returncode == 0
    assert "is no name" in done.stdout and "my_collector" in done.stdout
    assert "\x1b" not in done.stdout


class Unsure(Bystander):
    """Says something of its availability that is none."""

    def __init__(self, said: Any) -> None:
        self._said = said

    def availability(self) -> Availability:
        if isinstance(self._said, BaseException):
            raise self._said
        said: Availability = self._said
        return said


@pytest.mark.parametrize(
    "said",
    [
        None, KeyboardInterrupt(), GeneratorExit(), Availability(notes=("abc",)),  # type: ignore[arg-type]
        Availability.no("\udcff"), Availability.no(None), RuntimeError("\udcff"),  # type: ignore[arg-type]
    ],
)  # fmt: skip
def test_one_that_cannot_say_whether_it_works_is_broken(said: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "create", lambda name: Unsure(said))
    (found,) = registry.survey(["perf"])
    assert found.collector is None
    assert found.availability.unavailable is not None
    assert found.availability.unavailable.reason.startswith("it is broken: ")
    found.availability.unavailable.reason.encode()


def test_ctrl_c_while_collectors_are_asked_ends_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "create", lambda name: Unsure(Interrupt()))
    with pytest.raises(Interrupt):
        registry.survey(["perf"])
