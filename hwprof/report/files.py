"""What a report leaves with its run: ``document.json`` and the CSV tables.

``python -m hwprof.report.files RUN PARENT`` makes them in a process of its own, when it gets ``WRITE`` on its standard
input: so somebody else can write the trace meanwhile, and both take seconds of Python. The run is analysed by this one
alone: it says first what the trace has of that (``SliceFacts``). ``LOOK_AHEAD`` before that has it analyse what is
there already.
"""

from __future__ import annotations

import gc
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

import msgspec

from hwprof import processes
from hwprof.errors import MORE_PROCESSES, FullDiskError, HwprofError, is_full_disk
from hwprof.run.atomic import remove_parts
from hwprof.run.directory import RunDirectory

if TYPE_CHECKING:
    from hwprof.analysis.run_analysis import RunAnalysis
    from hwprof.analysis.slice_facts import SliceFacts

LOOK_EVERY_S: Final = 0.5
STANDSTILL_S: Final = 60
"""Without any processor time: its libraries wait for threads of their own that could not be started."""

AGAIN: Final = "hwprof report"

MOST_ERRORS_BYTES: Final = 65_536
"""Of what it says of errors, the last ones: the last line is told."""


LOOK_AHEAD: Final = b"a"
WRITE: Final = b"w"

KEPT: Final = b"k"
"""What it says when the document is there."""

LENGTH_BYTES: Final = 8
"""Before what the process says first: how long that is."""


class Failure(msgspec.Struct):
    """What the process says at last, as JSON, where it did not come to its end."""

    message: str
    remedy: str | None = None


def write_files(
    run: RunDirectory,
    first: Callable[[RunAnalysis], None] | None = None,
    ahead: RunAnalysis | None = None,
    kept: Callable[[], None] = lambda: None,
) -> None:
    """Makes the document, and writes it and the tables. ``first`` and ``ahead`` as for ``builder.build``; ``kept`` is
    called when the document is there. Raises ``HwprofError``."""
    from polars.exceptions import PolarsError

    from hwprof.report.csv.files import write_csv_files
    from hwprof.report.document.builder import build
    from hwprof.report.json.kept import fingerprint_of, keep
    from hwprof.run.tables import readable

    try:
        made_of = fingerprint_of(run)
        with readable(run.path):
            document = build(run, first=first, ahead=ahead)
        try:
            keep(run, document, made_of)
            kept()
        finally:
            write_csv_files(run, document)
    except (OSError, PolarsError) as error:
        if is_full_disk(error):
            raise FullDiskError(str(run.path)) from error
        if isinstance(error, OSError):
            raise HwprofError(f"cannot write to {run.path}: {error}") from error
        raise HwprofError(f"the tables in {run.path} cannot be read: {error}") from error


class FilesBeside:
    """``write_files`` in another process; a context, with which that process ends."""

    def __init__(self, run: RunDirectory) -> None:
        self._run = run
        self._process: subprocess.Popen[bytes] | None = None
        self._heard = False
        self._more: bytes | None = None  # the first of what it says after that
        self._errors = b""  # what it has said of them so far

    def prepare(self) -> None:
        """Lets it import what it needs, so that it begins at once when it is told to."""
        if self._process is None:
            with suppress(OSError):  # ``begin`` tries again
                self._process = self._start()

    def look_ahead(self) -> None:
        """All tables of passes that give times are written; others come, of which nobody takes the time."""
        self.prepare()
        if self._process is not None and self._process.stdin is not None:
            with suppress(BrokenPipeError):  # why it is gone, ``wait`` finds
                self._process.stdin.write(LOOK_AHEAD)
                self._process.stdin.flush()

    def begin(self) -> None:
        """All tables of the run are written. Who has ended before that is replaced. Raises ``OSError``."""
        if self._process is not None and self._process.poll() is not None:
            self._process.communicate()
            self._process = None
        self._process = process = self._process or self._start()
        assert process.stdin is not None
        with suppress(BrokenPipeError), process.stdin as told:  # why it is gone, ``wait`` finds
            told.write(WRITE)
        process.stdin = None

    def _start(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            processes.command("hwprof.report.files", str(self._run.path), str(os.getpid())),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is for the process that waits
        )

    def facts(self) -> SliceFacts | None:
        """What its analysis says for the trace, which is asked for once; None where it comes to none. One that was
        killed, as when memory runs out, has a failure: it would be no better here."""
        from hwprof.analysis.slice_facts import SliceFacts

        self._heard = True
        with suppress(HwprofError, msgspec.MsgspecError):  # ``wait`` tells
            if length := int.from_bytes(self._said(LENGTH_BYTES)):
                return msgspec.msgpack.decode(self._said(length), type=SliceFacts)
        assert self._process is not None
        with suppress(subprocess.TimeoutExpired):
            if (status := self._process.wait(LOOK_EVERY_S)) < 0:
                return SliceFacts(failure=f"the process that analysed the run was ended by {_signal(status)}")
        return None

    def wait_for_document(self) -> None:
        """Until it is kept, so that a report can be shown while the tables are written; or there is none: ``wait`` says
        why. Raises ``HwprofError``."""
        if not self._heard:
            self.facts()  # they come first
        if self._more is None:
            self._more = self._said(len(KEPT))

    def wait(self) -> None:
        """Until all files are written; raises ``HwprofError`` where one could not be."""
        self.wait_for_document()
        assert self._process is not None
        look = self._looking()
        while True:
            try:
                said, errors = self._process.communicate(timeout=LOOK_EVERY_S)
                break
            except subprocess.TimeoutExpired:
                look()
        if self._process.returncode:
            last = said if self._more == KEPT else (self._more or b"") + said
            raise _failure(self._process.returncode, last, self._errors + errors)

    def _said(self, count: int) -> bytes:
        """So many bytes of what it says, or fewer where it says no more. Raises ``HwprofError``."""
        assert self._process is not None and self._process.stdout is not None and self._process.stderr is not None
        look, said, descriptor = self._looking(), bytearray(), self._process.stdout.fileno()
        errors = [self._process.stderr.fileno()]  # else who says much of them waits for a reader
        while len(said) < count:
            ready = select.select([descriptor, *errors], [], [], LOOK_EVERY_S)[0]
            if not ready:
                look()
            elif descriptor not in ready:
                more = os.read(errors[0], MOST_ERRORS_BYTES)
                self._errors = (self._errors + more)[-MOST_ERRORS_BYTES:]
                errors = errors if more else []
            elif part := os.read(descriptor, count - len(said)):  # not through the buffer, which others read past
                said += part
            else:
                break
        return bytes(said)

    def _looking(self) -> Callable[[], None]:
        """A look at a process that takes long; raises ``HwprofError`` where it may never go on."""
        assert self._process is not None
        pid = self._process.pid
        standstill = processes.Standstill(pid, round(STANDSTILL_S / LOOK_EVERY_S))

        def look() -> None:
            if processes.is_stopped(pid):
                raise HwprofError("the report's files were not written: their process was stopped", AGAIN) from None
            if standstill.look():
                few = f"the report's files were not written: their process has done nothing for {STANDSTILL_S} s"
                raise HwprofError(few, f"{MORE_PROCESSES}; then {AGAIN}") from None

        return look

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.end()

    def end(self) -> None:
        """What it has not written stays unwritten."""
        if self._process is None:
            return
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
            remove_parts(self._run.path)
        self._process.communicate()


def _failure(status: int, said: bytes, errors: bytes) -> HwprofError:
    try:
        failure = msgspec.json.decode(said, type=Failure)
    except msgspec.MsgspecError:
        lines = errors.decode(errors="replace").strip().splitlines()
        last = f": {lines[-1]}" if lines else ""
        how = f"exit code {status}" if status >= 0 else f"their process was ended by {_signal(status)}"
        return HwprofError(f"the report's files were not written ({how}){last}", AGAIN)
    return HwprofError(failure.message, failure.remedy)


def _signal(status: int) -> str:
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = f"signal {-status}"
    return f"{name}, as the kernel does when memory runs out" if -status == signal.SIGKILL else name


def main(arguments: Sequence[str]) -> int:
    """Writes the files of the run in this folder when it is told to, as long as the process of that number waits for
    them; the exit code."""
    processes.end_with_parent(int(arguments[1]))
    gc.disable()  # of millions of objects none is in a cycle that matters before this process ends
    _preload()
    ahead: RunAnalysis | None = None
    while (told := sys.stdin.buffer.read(1)) == LOOK_AHEAD:
        ahead = _look_ahead(Path(arguments[0]))
    if told != WRITE:
        return 0
    said = _Said()
    try:
        write_files(RunDirectory.open(Path(arguments[0])), said.say, ahead, said.kept)
    except HwprofError as error:
        said.nothing()
        sys.stdout.buffer.write(msgspec.json.encode(Failure(error.message, error.remedy)))
        return error.exit_code
    return 0


def _look_ahead(path: Path) -> RunAnalysis | None:
    """What is there of a run, analysed; None where it cannot be, or where it changed meanwhile: whoever analyses all of
    it tells why."""
    from polars.exceptions import PolarsError

    from hwprof.analysis.run_analysis import RunAnalysis
    from hwprof.run.tables import readable

    with suppress(HwprofError, OSError, PolarsError), readable(path):
        analysis = RunAnalysis(RunDirectory.open(path))
        analysis.look_ahead()
        return analysis
    return None


class _Said:
    """What comes first, once."""

    def __init__(self) -> None:
        self._came = False

    def say(self, analysis: RunAnalysis) -> None:
        """What the trace has of the analysis."""
        from hwprof.analysis.slice_facts import slice_facts

        self._write(msgspec.msgpack.encode(slice_facts(analysis)))

    def kept(self) -> None:
        """The document is there."""
        with suppress(BrokenPipeError):
            sys.stdout.buffer.write(KEPT)
            sys.stdout.buffer.flush()

    def nothing(self) -> None:
        """Where it did not come to that."""
        if not self._came:
            self._write(b"")

    def _write(self, first: bytes) -> None:
        self._came = True
        with suppress(BrokenPipeError):  # nobody writes a trace
            sys.stdout.buffer.write(len(first).to_bytes(LENGTH_BYTES) + first)
            sys.stdout.buffer.flush()


def _preload() -> None:
    """What ``write_files`` imports and reads for every run: half a second."""
    from hwprof.analysis import run_analysis, sampled_pass, slice_facts  # noqa: F401
    from hwprof.hardware.catalogue import catalogue
    from hwprof.report import sections
    from hwprof.report.csv import files  # noqa: F401
    from hwprof.report.document import builder  # noqa: F401
    from hwprof.report.json import kept  # noqa: F401
    from hwprof.run import tables  # noqa: F401

    catalogue()
    for section in sections.of_room("document"):
        _ = section.document
    for section in sections.of_room("csv"):
        _ = section.csv


if __name__ == "__main__":
    processes.leave(main(sys.argv[1:]))  # PYTHONINSPECT would have it go on
