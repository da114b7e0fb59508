"""What holds for all tests."""

from __future__ import annotations

import fcntl
import os
import signal
import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest
from hypothesis import settings
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

# A shell's background jobs ignore Ctrl-C, and so would every program that a test starts, and interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Eight seconds of a busy machine, before each run whose cache folder is its own; tests of peaks ask for them.
os.environ["HWPROF_PEAKS"] = "0"

# A deadline would make every property a timing test, and machines are noisy.
# Hypothesis tries 100 examples of each; every run of CI tries others, so that it sees as many in two or three.
settings.register_profile("hwprof", deadline=None, max_examples=int(os.environ.get("HWPROF_EXAMPLES", "40")))
settings.load_profile("hwprof")

ORDER: Final = ("pmu", "faults", "integration", "ui", "unit")
"""What takes long begins first."""


def _alone(item: pytest.Item) -> bool:
    return item.get_closest_marker("alone") is not None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Those that run beside others first, so that no process waits for one that is alone before the end. Those may
    measure once more: a hypervisor's pause that nothing tells of fails them, and is not there again; a defect is. The
    summary names what was run again."""
    here = Path(__file__).parent
    for item in filter(_alone, items):
        item.add_marker(pytest.mark.flaky(reruns=1, only_rerun="AssertionError"))
    items.sort(key=lambda item: (_alone(item), ORDER.index(item.path.relative_to(here).parts[0])))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """What is measured once for a module is measured again where a test of it is run again."""
    if isinstance(item, pytest.Function) and _alone(item) and getattr(item, "execution_count", 1) > 1:
        definitions = (one for found in item._fixtureinfo.name2fixturedefs.values() for one in found)
        for definition in definitions:
            if definition.scope == "module":
                definition.finish(item._request)  # type: ignore[arg-type]  # the request is for its hooks only


class _ByWhatTheyShare(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
    """Where processes share the tests (``pytest --numprocesses 2``), those that share what is made once stay in one:
    the tests of a file, and all that look at emulated machines."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return "pmu" if "/pmu/" in file else file


SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@pytest.fixture(autouse=True)
def signals() -> Iterator[None]:
    """A test leaves them as they were: programs that later ones start would not hear a Ctrl-C that is ignored here."""
    before = {number: signal.getsignal(number) for number in SIGNALS}
    yield
    changed = [number.name for number, handler in before.items() if signal.getsignal(number) is not handler]
    for number, handler in before.items():
        signal.signal(number, handler)
    assert not changed


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling:
    return _ByWhatTheyShare(config, log)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """A test marked ``alone`` has the machine to itself: no test of another process runs beside it."""
    if not hasattr(item.config, "workerinput"):  # there is one process only
        return (yield)
    with _turn(_shared_folder(item.config), alone=_alone(item)):
        return (yield)


def _shared_folder(config: pytest.Config) -> Path:
    """Of all processes of this run: pytest's cache, or (``-p no:cacheprovider``) one of its own."""
    if config.pluginmanager.has_plugin("cacheprovider"):
        return config.cache.mkdir("turns")
    folder = Path(tempfile.gettempdir(), f"hwprof-tests-{config.workerinput['testrunuid']}")  # type: ignore[attr-defined]
    folder.mkdir(exist_ok=True)
    return folder


@contextmanager
def _turn(folder: Path, *, alone: bool) -> Iterator[None]:
    """Waits for the room, in which one may be alone or several together; at the gate, so that who wants to be alone
    need not wait until nobody else comes."""
    with (folder / "gate").open("w") as gate, (folder / "room").open("w") as room:
        fcntl.flock(gate, fcntl.LOCK_EX)
        fcntl.flock(room, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        fcntl.flock(gate, fcntl.LOCK_UN)
        try:
            yield
        finally:
            fcntl.flock(room, fcntl.LOCK_UN)  # whoever inherited the descriptor
