"""A bench's cases on the machines of a Ray cluster: each machine does one at a time, and has it for itself.

A machine takes part that has hwprof installed, and the resource ``hwprof`` (``ray start --resources '{"hwprof": 1}'``).
Where one is lost, Ray gives its case to another one; a case that comes twice is kept once. Ray is in a process of its
own (``cluster_driver``): it ends the one that it is in where the cluster's head is gone, and waits for whoever accepts
and never answers.
"""

from __future__ import annotations

import os
import select
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Final

import msgspec

from hwprof import packages, processes
from hwprof.bench.campaign import Progress
from hwprof.bench.cluster_messages import Machines, Message, Refused
from hwprof.bench.result import Result
from hwprof.bench.store import Store
from hwprof.errors import HwprofError, UsageError
from hwprof.report.text.figures import plural

AUTO: Final = "auto"
CLIENT: Final = "ray://"
ANSWERS_S: Final = 10.0
CONNECTS_S: Final = 60.0
"""So long Ray may take to be part of the cluster."""

ENDS_S: Final = 10.0
"""And to leave it."""

LOG_FILE: Final = "ray.log"
START_HEAD: Final = "ray start --head"


def carry_out_all(store: Store, address: str, progress: Progress, told: Callable[[Result], None]) -> None:
    """As ``campaign.carry_out_all``, on all machines of the cluster at ``address`` that take part. Raises
    ``HwprofError`` where none does, or none is left."""
    total = len(store.plan.cases)
    waiting = {case.key: case for case in store.left()}
    progress.phase("bench", f"asking {address}", None)
    log = store.path / LOG_FILE
    with _driver(store.path, address, log) as messages:
        for message in messages:
            if isinstance(message, Machines):
                store.stays = True  # its cases are begun there
                progress.phase("bench", f"measuring on {plural(message.number, 'machine')}", total)
            elif isinstance(message, Refused):
                raise HwprofError(message.message, message.remedy)
            else:
                case = waiting.pop(message.key, None)
                result = store.result_of(case) if case is not None else None
                if result is not None:
                    told(result)
            progress.reached(total - len(waiting), total)
    if waiting:
        store.stays = True  # with the log
        raise HwprofError(
            f"the Ray cluster at {address} is gone: {plural(len(waiting), 'case')} not done (see {log})",
            store.again(address),
        )
    log.unlink(missing_ok=True)


@contextmanager
def _driver(folder: Path, address: str, log: Path) -> Iterator[Iterator[Message]]:
    """What it says, until it ends. Whoever leaves ends it."""
    heard, says = os.pipe()
    with log.open("wb") as written, os.fdopen(heard, "rb") as messages:
        try:
            driver = subprocess.Popen(
                processes.command("hwprof.bench.cluster_driver", str(folder), address, str(says)),
                stdin=subprocess.DEVNULL,
                stdout=written,
                stderr=subprocess.STDOUT,
                pass_fds=(says,),
                start_new_session=True,  # Ctrl-C is for who waits
            )
        finally:
            os.close(says)
        try:
            yield _heard(messages, address)
            with suppress(subprocess.TimeoutExpired):
                driver.wait(ENDS_S)
        finally:
            _end(driver)


def _heard(messages: IO[bytes], address: str) -> Iterator[Message]:
    """Raises ``HwprofError`` where the first one does not come."""
    if not select.select([messages], [], [], CONNECTS_S)[0]:
        raise HwprofError(f"no Ray cluster at {address}: nothing answers for {CONNECTS_S:.0f} s", START_HEAD)
    for line in messages:
        if not line.endswith(b"\n"):
            return  # it was ended in the midst of it
        yield msgspec.json.decode(line, type=Message)


def _end(driver: subprocess.Popen[bytes]) -> None:
    """Gently: the cases that the machines are at are given up."""
    with suppress(subprocess.TimeoutExpired):
        driver.terminate()
        driver.wait(ENDS_S)
    driver.kill()
    driver.wait()


def require_reachable(address: str) -> None:
    """Ray waits for minutes where nobody answers. Raises ``HwprofError``, and ``UsageError`` for what is no address."""
    from importlib.util import find_spec

    if find_spec("ray") is None:
        raise HwprofError("ray is not installed", packages.RAY)
    if address == AUTO:
        return
    host, _, port = address.removeprefix(CLIENT).rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port[:6]) < 1 << 16:
        raise UsageError(f"--on {address}: no address of a Ray cluster", f"{AUTO}, HOST:PORT or {CLIENT}HOST:PORT")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=ANSWERS_S).close()
    except (OSError, UnicodeError) as error:  # a name that none has
        reason = getattr(error, "strerror", None) or str(error)
        raise HwprofError(f"no Ray cluster at {address}: {reason}", START_HEAD) from error
