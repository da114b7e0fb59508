"""A bench's cases on the machines of a Ray cluster: each machine does one at a time, and has it for itself.

A machine takes part that has hwprof installed, and the resource ``hwprof`` (``ray start --resources '{"hwprof": 1}'``).
Where one is lost, Ray gives its case to another one; a case that comes twice is kept once.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import msgspec

from hwprof import packages, polars_memory
from hwprof.bench.campaign import Progress
from hwprof.bench.matrix import Case
from hwprof.bench.process import carry_out
from hwprof.bench.result import Result
from hwprof.bench.samples import LARGEST_BYTES, Failure
from hwprof.bench.store import MachineUsed, Settings, Store
from hwprof.errors import HwprofError, UsageError, first_line
from hwprof.hardware import machine
from hwprof.session import peaks

RESOURCE: Final = "hwprof"
LOOK_EVERY_S: Final = 1.0

AUTO: Final = "auto"
CLIENT: Final = "ray://"
ANSWERS_S: Final = 10.0

OF_RAY: Final = "OMP_NUM_THREADS"
"""Ray sets it to the processors that a task has asked for; how many threads a case has is the case's."""

START: Final = f"ray start --resources '{{\"{RESOURCE}\": 1}}' on each machine"


def carry_out_all(store: Store, address: str, progress: Progress, told: Callable[[Result], None]) -> None:
    """As ``campaign.carry_out_all``, on all machines of the cluster at ``address`` that take part. Raises
    ``HwprofError`` where none does, or none is left."""
    left, total = store.left(), len(store.plan.cases)
    progress.phase("bench", f"asking {address}", None)
    with _connected(address) as ray:
        machines = _machines(ray)
        if not machines:
            raise HwprofError(f"no machine of {address} has the resource {RESOURCE}", START)
        progress.phase("bench", f"measuring on {machines} machines", total)
        progress.reached(total - len(left), total)
        measure = ray.remote(num_cpus=0, resources={RESOURCE: 1}, max_retries=-1, scheduling_strategy="SPREAD")(
            _measure
        )
        settings, folder = msgspec.json.encode(store.plan.settings), store.plan.folder
        waiting = {measure.remote(msgspec.json.encode(case), settings, folder): case for case in left}
        try:
            while waiting:
                ready, _ = ray.wait([*waiting], num_returns=1, timeout=LOOK_EVERY_S)
                for one in ready:
                    result = _keep(store, waiting.pop(one), ray, one)
                    progress.reached(total - len(waiting), total)
                    told(result)
                if not ready and not _machines(ray):
                    raise HwprofError(
                        f"no machine is left: {len(waiting)} cases are not done", f"hwprof bench --resume {store.path}"
                    )
        finally:
            for one in waiting:
                with suppress(Exception):
                    ray.cancel(one, force=True)


@contextmanager
def _connected(address: str) -> Iterator[Any]:
    try:
        import ray
    except ImportError as error:
        raise HwprofError("ray is not installed", packages.RAY) from error
    ends = signal.getsignal(signal.SIGTERM)
    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
        signal.signal(signal.SIGTERM, ends)  # Ray has put its own there
    except Exception as error:  # ConnectionError, and what gRPC raises
        raise HwprofError(f"no Ray cluster at {address}: {first_line(error)}", "ray start --head") from error
    try:
        yield ray
    finally:
        ray.shutdown()


def require_reachable(address: str) -> None:
    """Ray waits for minutes where nobody answers. Raises ``HwprofError``, and ``UsageError`` for what is no address."""
    if address == AUTO:
        return
    host, _, port = address.removeprefix(CLIENT).rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port[:6]) < 1 << 16:
        raise UsageError(f"--on {address}: no address of a Ray cluster", f"{AUTO}, HOST:PORT or {CLIENT}HOST:PORT")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=ANSWERS_S).close()
    except (OSError, UnicodeError) as error:  # a name that none has
        reason = getattr(error, "strerror", None) or str(error)
        raise HwprofError(f"no Ray cluster at {address}: {reason}", "ray start --head") from error


def _machines(ray: Any) -> int:
    """How many take part."""
    return sum(1 for node in ray.nodes() if node["Alive"] and node["Resources"].get(RESOURCE, 0) >= 1)


def _keep(store: Store, case: Case, ray: Any, one: Any) -> Result:
    try:
        files: Mapping[str, bytes] = ray.get(one)
        return store.take(case, files)
    except (ray.exceptions.RayError, msgspec.MsgspecError) as error:
        reason = first_line(getattr(error, "cause", None) or error)
        created, _ = store.plan.created, store.begin(case)
        result = Result(case=case, created=created, seconds=0.0, failure=Failure(f"on the cluster: {reason}"))
        store.keep(result)
        return result


def _measure(case: bytes, settings: bytes, folder: str) -> dict[str, bytes]:
    """On one of the machines: the case's files, with its result and the machine's peaks among them."""
    from hwprof.bench.store import MACHINE_FILE, RESULT_FILE

    wanted = msgspec.json.decode(case, type=Case)
    environment = {name: value for name, value in polars_memory.environment_of_models().items() if name != OF_RAY}
    of = machine.describe()
    usual = peaks.usual_threads(of)
    how = msgspec.json.decode(settings, type=Settings)
    used = MachineUsed(machine=of)
    with suppress(HwprofError, OSError):
        if how.peaks:
            used.peaks = peaks.kept(of, usual) or peaks.measure(of, usual)
    with tempfile.TemporaryDirectory(prefix="hwprof-bench-") as place:
        found = carry_out(
            wanted,
            Path(place),
            how,
            environment,
            folder if Path(folder).is_dir() else place,
        )
        files = {
            file.name: file.read_bytes()
            for file in Path(place).iterdir()
            if file.is_file() and not file.is_symlink() and file.stat().st_size <= LARGEST_BYTES
        }
    files[RESULT_FILE] = msgspec.json.encode(msgspec.structs.replace(found, machine=os.uname().nodename))
    files[MACHINE_FILE] = msgspec.json.encode(used)
    return files
