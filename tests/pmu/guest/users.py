"""Jobs that tell what may be counted: by root, and by an ordinary user at each level of kernel.perf_event_paranoid."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from collectors.papi.collector import PapiCollector
from collectors.perf.collector import PerfCollector
from hwprof.errors import HwprofError
from hwprof.hardware import perf_event
from hwprof.hardware.machine import describe
from tests.pmu.guest.command import register
from tests.pmu.guest.lifecycles import Lifecycle, context, rows
from tests.pmu.guest.loops import loop
from tests.support.reported import fields, texts

PARANOID = Path("/proc/sys/kernel/perf_event_paranoid")
USER = 1000


@contextmanager
def paranoid(level: int) -> Iterator[None]:
    """While the kernel is that careful."""
    before = PARANOID.read_text()
    PARANOID.write_text(str(level))
    try:
        yield
    finally:
        PARANOID.write_text(before)


def job_of_user(name: str) -> dict[str, Any]:
    """What a job finds as an ordinary user."""
    out = Path(f"/tmp/{name}")
    out.mkdir(exist_ok=True)
    out.chmod(0o777)
    user_runs(["tests.pmu.guest", name], {"OUT": str(out)})
    result: dict[str, Any] = json.loads((out / f"{name}.json").read_text())
    return result


def user_runs(module: Sequence[str], environment: dict[str, str] | None = None) -> str:
    """The output of a module, run with its arguments by an ordinary user."""
    command, variables = [sys.executable, "-m", *module], os.environ | (environment or {})
    done = subprocess.run(
        command, check=True, env=variables, user=USER, group=USER, extra_groups=[], stdout=subprocess.PIPE, text=True
    )
    return done.stdout


def what_is_there() -> dict[str, Any]:
    """What the collector says of itself and of the machine, and one counted loop."""
    collector = PerfCollector()
    available = collector.availability()
    machine = describe()
    result: dict[str, Any] = {
        "ok": available.ok,
        "reason": available.reason,
        "remedy": available.remedy,
        "notes": texts(available.notes),
        "detail": fields(available.detail),
        "has_core_pmu": machine.has_core_pmu,
        "processor": machine.processor,
        "pmus": machine.pmus,
        "paranoid": perf_event.paranoid_level(),
        "uid": os.getuid(),
    }
    try:
        collector.start(context())
    except HwprofError as error:
        return result | {"refused": error.message, "refused_remedy": error.remedy}
    lifecycle = Lifecycle(collector)
    collector.begin_iteration(0)
    first = lifecycle.edge(lifecycle.full)
    loop(1_000_000)
    lifecycle.span(first, lifecycle.edge(lifecycle.full))
    stopped = collector.stop()
    return result | {"rows": rows(collector, lifecycle.spans), "stop_notes": texts(stopped.notes)}


def ordinary_user() -> dict[str, Any]:
    """``what_is_there`` as an ordinary user at each level."""
    found = {}
    for level in (1, 2, 3):
        with paranoid(level):
            found[str(level)] = job_of_user("what_is_there")
    return found


def papi_available() -> dict[str, Any]:
    """What the PAPI collector says of itself."""
    available = PapiCollector().availability()
    return {
        "ok": available.ok,
        "reason": available.reason,
        "remedy": available.remedy,
        "notes": texts(available.notes),
        "detail": fields(available.detail),
    }


def papi_at_levels() -> dict[str, Any]:
    """That of an ordinary user who may count his own code, and of one who may count nothing."""
    found = {}
    for level in (2, 3):
        with paranoid(level):
            found[str(level)] = job_of_user("papi_available")
    return found


def events() -> dict[str, Any]:
    """``hwprof events`` of an ordinary user: all of the processor's, and one of his own."""
    register()
    mine = "armv8_pmuv3/event=0x8,name=mine/u"
    with paranoid(2):
        listed: dict[str, Any] = json.loads(
            user_runs(["tests.pmu.guest.command", "events", "--format", "json", "--all", mine])
        )
    return listed
