"""A bench's folder: what it compares, and of each case that is done its result and pyperf's own file. A case is done
when its result is there, so that one that was killed goes on where it was."""

from __future__ import annotations

import fcntl
import os
import re
import shlex
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Self

import msgspec

from hwprof import __version__
from hwprof.bench.matrix import Case
from hwprof.bench.result import Result
from hwprof.errors import HwprofError, UsageError, cannot_write, remedy_of_writing
from hwprof.run import digests, foreign_json
from hwprof.run.atomic import atomic, remove_parts
from hwprof.run.directory import BENCH_FILE
from hwprof.run.manifest import Machine
from hwprof.run.peaks import Peaks
from hwprof.run.regular_files import read_regular

PLAN_FILE: Final = BENCH_FILE
LOCK_FILE: Final = ".lock"
RESULT_FILE: Final = "result.json"
CASES: Final = "cases"
PYPERF_FILE: Final = "pyperf.json"
MACHINE_FILE: Final = "machine.json"
MACHINES: Final = "machines"
PLAIN: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]{0,80}")
"""Names of files that another machine may give."""

LARGEST_BYTES: Final = 64 << 20
VERSION: Final = 1


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """How each case is measured, in pyperf's words."""

    processes: int = 3
    values: int = 10  # of each process
    warmups: int = 1
    min_time_s: float = 0.1  # of a value: of so many iterations that it takes as long
    timeout_s: int = 1800  # of a process
    peaks: bool = True  # whether those of other machines are measured
    power: dict[str, dict[str, Any]] = {}  # options of those that read energy, by collector


class Plan(msgspec.Struct, kw_only=True):
    """What a bench is to do, and where."""

    schema_version: int = VERSION
    hwprof_version: str = __version__
    created: str
    command: list[str]
    folder: str  # from which: where paths of the cases begin
    machine: Machine
    peaks: Peaks | None = None
    settings: Settings
    store: str | None = None  # the URL of a copy of it
    cases: list[Case]


class MachineUsed(msgspec.Struct, kw_only=True):
    """One that did cases."""

    machine: Machine
    peaks: Peaks | None = None


class Store:
    """One bench's folder."""

    def __init__(self, path: Path, plan: Plan) -> None:
        self.path = path
        self.plan = plan
        self.stays = True  # a new one does when its first case is begun, or a message names it

    @classmethod
    def create(cls, root: Path, plan: Plan) -> Self:
        """A new one below ``root``, and its copy below the plan's ``store``. Raises ``HwprofError`` where the place
        cannot be written."""
        name = f"bench-{datetime.fromisoformat(plan.created):%Y%m%d-%H%M%S}"
        try:
            root.mkdir(parents=True, exist_ok=True)
            number = 1
            while True:
                path = root / (name if number == 1 else f"{name}-{number}")
                try:
                    path.mkdir()
                    break
                except FileExistsError:
                    number += 1
            (path / CASES).mkdir()
            if plan.store is not None:
                plan.store = f"{plan.store.rstrip('/')}/{path.name}-{_own_digits(path)}"
            made = cls(path, plan)
            made.stays = False
            made.keep_plan()
        except OSError as error:
            raise HwprofError(f"cannot write a bench to {root}: {error.strerror}", remedy_of_writing(error)) from error
        return made

    @classmethod
    def open(cls, path: Path) -> Self:
        """Raises ``UsageError`` where there is none."""
        try:
            plan = foreign_json.decode(read_regular(path / PLAN_FILE, LARGEST_BYTES), Plan)
        except OSError as error:
            raise UsageError(
                f"{path} is no folder of a bench: {error.strerror}", "one that hwprof bench made"
            ) from error
        except msgspec.MsgspecError as error:
            raise HwprofError(f"{path / PLAN_FILE} is damaged: {error}", "hwprof bench again") from error
        if plan.schema_version > VERSION:
            raise HwprofError(f"{path} was made by hwprof {plan.hwprof_version}", "that version, or a later one")
        return cls(path, plan)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """While it lasts nobody else works on it. Raises ``HwprofError`` where somebody does."""
        try:
            lock = os.open(self.path / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise cannot_write(self.path, error) from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield
        except BlockingIOError as error:
            raise HwprofError(f"another hwprof bench works on {self.path}", "wait for it") from error
        finally:
            os.close(lock)

    def keep_plan(self) -> None:
        """Writes it as it stands now. Raises ``OSError``."""
        with atomic(self.path / PLAN_FILE) as part:
            part.write_bytes(msgspec.json.format(msgspec.json.encode(self.plan), indent=1))

    def folder_of(self, case: Case) -> Path:
        """Where its files are."""
        return self.path / CASES / case.key

    def begin(self, case: Case) -> Path:
        """An empty folder for it: what one that was killed has left goes. Raises ``OSError``."""
        self.stays = True
        folder = self.folder_of(case)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        return folder

    def keep(self, result: Result) -> None:
        """From now on the case is done. Raises ``OSError``."""
        self.folder_of(result.case).mkdir(parents=True, exist_ok=True)  # a model's code may have taken it away
        with atomic(self.folder_of(result.case) / RESULT_FILE) as part:
            part.write_bytes(msgspec.json.encode(result))

    def take(self, case: Case, files: Mapping[str, bytes]) -> Result:
        """Keeps what another machine made of a case, of which it has ``RESULT_FILE`` and ``MACHINE_FILE``. Raises
        ``OSError`` and ``msgspec.MsgspecError``."""
        result = foreign_json.decode(files[RESULT_FILE], Result)
        folder = self.begin(case)
        for name in files.keys() - {RESULT_FILE, MACHINE_FILE}:
            if PLAIN.fullmatch(name):
                (folder / name).write_bytes(files[name])
        place = self.path / MACHINES
        place.mkdir(exist_ok=True)
        with atomic(place / f"{digests.of_bytes(result.machine.encode())[:8]}.json") as part:
            part.write_bytes(files[MACHINE_FILE])
        self.keep(msgspec.structs.replace(result, case=case))
        return result

    def machines(self) -> dict[str, MachineUsed]:
        """Those that did cases for this bench beside its own, by name."""
        found = {}
        for file in sorted((self.path / MACHINES).glob("*.json")):
            with suppress(OSError, msgspec.MsgspecError):
                used = foreign_json.decode(read_regular(file, LARGEST_BYTES), MachineUsed)
                found[used.machine.hostname] = used
        return found

    def results(self) -> list[Result]:
        """Of the cases that are done, in the plan's order; one that cannot be read is not."""
        return [found for case in self.plan.cases if (found := self.result_of(case)) is not None]

    def left(self) -> list[Case]:
        """Those that are not done, or failed: what was wrong may be mended."""
        done = {one.key for one in self.results() if one.failure is None}
        return [case for case in self.plan.cases if case.key not in done]

    def pyperf_files(self, results: Iterable[Result]) -> Sequence[Path]:
        """Those of cases that were measured."""
        files = (self.folder_of(one.case) / PYPERF_FILE for one in results if one.failure is None)
        return [file for file in files if file.is_file()]

    def again(self, address: str | None) -> str:
        """What goes on with it, on the cluster at ``address`` or on this machine."""
        on = "" if address is None else f" --on {shlex.quote(address)}"
        return f"hwprof bench --resume {shlex.quote(str(self.path))}{on}"

    def discard_unbegun(self) -> None:
        """Takes a new one away, of which no case was begun."""
        if not self.stays:
            shutil.rmtree(self.path, ignore_errors=True)

    def tidy(self) -> None:
        """Takes away what was left in the midst of writing."""
        for folder in (self.path, *(self.path / CASES).glob("*")):
            if folder.is_dir() and not folder.is_symlink():
                remove_parts(folder)

    def result_of(self, case: Case) -> Result | None:
        """None where it is not done, or cannot be read."""
        with suppress(OSError, msgspec.MsgspecError):
            found = foreign_json.decode(read_regular(self.folder_of(case) / RESULT_FILE, LARGEST_BYTES), Result)
            return found if found.case == case else None
        return None


def _own_digits(path: Path) -> str:
    """That tell a bench's copy from those of others who began one in the same second, wherever."""
    there = f"{os.uname().nodename} {path.absolute()} {os.getpid()}"
    return digests.of_bytes(there.encode(errors="surrogateescape"))[:6]
