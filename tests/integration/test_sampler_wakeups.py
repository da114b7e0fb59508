"""Who woke whom, as this machine's kernel records it: a thread that waits for a second one, which waits for a third."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.requirements import missing, require_tool

pytestmark = pytest.mark.alone

WATCH = """
import json, sys
from pathlib import Path
from tests.support.threaded_programs import watched

run = watched("chain", Path(sys.argv[1]))
waits = run.collected.tables["switches"].drop_nulls(["out_ns", "in_ns"]).filter(reason="semaphore")
path = [(one["tid"], one["state"], one["cause"], one["share"]) for one in run.times.critical_path()]
print(json.dumps({
    "wakers": run.collected.detail.wakers,
    "tids": [one.tid for one in run.threads],
    "waits": waits.select("tid", "out_ns", "woken_ns", "in_ns", "waker").rows(),
    "path": path,
}))
"""
MOUNT = 'mount -t tracefs tracefs /sys/kernel/tracing && exec "$0" "$@"'


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Where tracefs is mounted for this process alone."""
    if os.geteuid() != 0 or not Path("/sys/kernel/tracing").is_dir():
        missing("a tracefs that may be mounted (root)")
    alone = [require_tool("unshare"), "--mount", "sh", "-c", MOUNT]
    command = [*alone, sys.executable, "-c", WATCH, str(tmp_path_factory.mktemp("chain"))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if "mount:" in done.stderr:
        missing(f"a tracefs that may be mounted ({done.stderr.strip()})")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    if not found["wakers"]:
        missing("tracepoints that may be recorded")
    return found


def test_every_wait_was_ended_by_the_thread_that_ended_it(chain: dict[str, Any]) -> None:
    """In this order, but for the first ones, which began before their thread was sampled."""
    main, helper, other = chain["tids"]
    ended_by = {main: {helper}, helper: {main, other}, other: {helper}}
    assert {tid for tid, *_ in chain["waits"]} >= {main, helper}
    for tid, out_ns, woken_ns, in_ns, waker in chain["waits"]:
        assert waker in ended_by[tid], (tid, waker, chain["tids"])
        assert out_ns < woken_ns <= in_ns
    assert len([1 for tid, *_ in chain["waits"] if tid == main]) == 5


def test_the_path_goes_from_one_to_the_next(chain: dict[str, Any]) -> None:
    main, helper, other = chain["tids"]
    shares: dict[int, float] = {}
    for tid, state, cause, share in chain["path"]:
        if state == "busy" and tid != main:
            assert cause == "semaphore"
            shares[tid] = shares.get(tid, 0.0) + share
    assert shares[other] == pytest.approx(2 * shares[helper], rel=0.1), "30 ms of the one, 15 of the other"
