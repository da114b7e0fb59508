"""Ray in a process of its own: ``python -m hwprof.bench.cluster_driver FOLDER ADDRESS DESCRIPTOR`` gives the cases of a
bench that are not done to the machines of a cluster, and keeps their results. ``DESCRIPTOR``: where its messages go."""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import msgspec

from hwprof import processes
from hwprof.bench.cluster import START_HEAD
from hwprof.bench.cluster_machine import measure
from hwprof.bench.cluster_messages import Kept, Machines, Message, Refused
from hwprof.bench.matrix import Case
from hwprof.bench.result import Result
from hwprof.bench.samples import Failure
from hwprof.bench.store import Store
from hwprof.errors import HwprofError, cannot_write, first_line

RESOURCE: Final = "hwprof"
LOOK_EVERY_S: Final = 1.0
GIVES_UP_S: Final = 4.0
MOST_LOSSES: Final = 3
"""Of a case, with the process or the machine that was at it: it may be the case that ends them."""
START: Final = f"ray start --resources '{{\"{RESOURCE}\": 1}}' on each machine"


def main(folder: str, address: str, descriptor: str) -> int:
    """The exit code; why it could not go on is told."""
    processes.end_with_parent()

    def tell(message: Message) -> None:
        os.write(int(descriptor), msgspec.json.encode(message) + b"\n")

    try:
        with _connected(address) as ray:
            _carry_out_all(Store.open(Path(folder)), address, ray, tell)
    except HwprofError as error:
        tell(Refused(error.message, error.remedy))
        return 1
    except OSError as error:
        refused = cannot_write(folder, error)
        tell(Refused(refused.message, refused.remedy))
        return 1
    return 0


def _carry_out_all(store: Store, address: str, ray: Any, tell: Callable[[Message], None]) -> None:
    machines = _machines(ray)
    if not machines:
        raise HwprofError(f"no machine of {address} has the resource {RESOURCE}", START)
    tell(Machines(machines))
    remote = ray.remote(num_cpus=0, resources={RESOURCE: 1}, max_retries=0, scheduling_strategy="SPREAD")(measure)
    settings, folder = msgspec.json.encode(store.plan.settings), store.plan.folder

    def begun(case: Case) -> Any:
        return remote.remote(msgspec.json.encode(case), settings, folder)

    waiting = {begun(case): case for case in store.left()}
    losses: Counter[str] = Counter()
    try:
        while waiting:
            ready, _ = ray.wait([*waiting], num_returns=1, timeout=LOOK_EVERY_S)
            for one in ready:
                case = waiting.pop(one)
                if _kept(store, case, ray, one, losses):
                    tell(Kept(case.key))
                else:
                    waiting[begun(case)] = case
            if not ready and not _machines(ray):
                raise HwprofError(f"no machine is left: {len(waiting)} cases are not done", store.again(address))
    finally:
        _give_up(ray, [*waiting])


@contextmanager
def _connected(address: str) -> Iterator[Any]:
    import ray

    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    except Exception as error:  # ConnectionError, and what gRPC raises
        raise HwprofError(f"no Ray cluster at {address}: {first_line(error)}", START_HEAD) from error
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # Ray has put its own there
    try:
        yield ray
    finally:
        ray.shutdown()


def _machines(ray: Any) -> int:
    """How many take part."""
    return sum(1 for node in ray.nodes() if node["Alive"] and node["Resources"].get(RESOURCE, 0) >= 1)


def _give_up(ray: Any, tasks: list[Any]) -> None:
    """First so that the machines take away what they have left."""
    for force in (False, True):
        with suppress(Exception):
            for one in tasks:
                ray.cancel(one, force=force)
            ray.wait(tasks, num_returns=len(tasks), timeout=GIVES_UP_S)


def _kept(store: Store, case: Case, ray: Any, one: Any, losses: Counter[str]) -> bool:
    """Whether it is done, well or not. Where Ray has lost it, it is not, until it was lost too often; ``losses``: by
    case."""
    try:
        files: Mapping[str, bytes] = ray.get(one)
        store.take(case, files)
    except (ray.exceptions.RayTaskError, msgspec.MsgspecError) as error:
        reason = first_line(getattr(error, "cause", None) or error)
        _fail(store, case, Failure(f"on the cluster: {reason}"))
    except ray.exceptions.RayError as error:
        losses[case.key] += 1
        if losses[case.key] < MOST_LOSSES:
            return False
        message = f"on the cluster: who was at it was lost {MOST_LOSSES} times: {first_line(error)}"
        _fail(store, case, Failure(message, "a machine with more memory, if that is what it ran out of"))
    return True


def _fail(store: Store, case: Case, failure: Failure) -> None:
    store.begin(case)
    store.keep(Result(case=case, created=store.plan.created, seconds=0.0, failure=failure))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
