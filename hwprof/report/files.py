"""What a report leaves with its run: ``document.json`` and the CSV tables.

``python -m hwprof.report.files RUN PARENT`` makes them in a process of its own, so that somebody else can write the
trace meanwhile: both take seconds of Python.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from hwprof import processes
from hwprof.errors import FullDiskError, HwprofError, is_full_disk

if TYPE_CHECKING:
    from hwprof.run.directory import RunDirectory


class Failure(msgspec.Struct):
    """What the process says, as one line of JSON, where it did not come to its end."""

    message: str
    remedy: str | None = None


def write_files(run: RunDirectory) -> None:
    """Makes the document, and writes it and the tables. Raises ``HwprofError``."""
    from polars.exceptions import PolarsError

    from hwprof.report.csv.files import write_csv_files
    from hwprof.report.document.builder import build
    from hwprof.report.json.kept import keep
    from hwprof.run.tables import readable

    try:
        with readable(run.path):
            document = build(run)
        write_csv_files(run, document)
        keep(run, document)
    except (OSError, PolarsError) as error:
        if is_full_disk(error):
            raise FullDiskError(str(run.path)) from error
        if isinstance(error, OSError):
            raise HwprofError(f"cannot write to {run.path}: {error}") from error
        raise HwprofError(f"the tables in {run.path} cannot be read: {error}") from error


@contextmanager
def written_beside(run: RunDirectory) -> Iterator[Callable[[], None]]:
    """``write_files`` in another process, which is ended with the context. What is yielded waits for it, and raises
    ``HwprofError`` where it failed."""
    from hwprof.run.directory import remove_parts

    process = subprocess.Popen(
        processes.command("hwprof.report.files", str(run.path), str(os.getpid())),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,  # Ctrl-C is for the process that waits
    )

    def wait() -> None:
        said, errors = process.communicate()
        if process.returncode:
            raise _failure(process.returncode, said, errors)

    try:
        yield wait
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
            remove_parts(run.path)
        process.communicate()


def _failure(status: int, said: bytes, errors: bytes) -> HwprofError:
    try:
        failure = msgspec.json.decode(said, type=Failure)
    except msgspec.MsgspecError:
        lines = errors.decode(errors="replace").strip().splitlines()
        last = f": {lines[-1]}" if lines else ""
        return HwprofError(f"the report's files were not written (exit code {status}){last}", "hwprof report --debug")
    return HwprofError(failure.message, failure.remedy)


def main(arguments: Sequence[str]) -> int:
    """Writes the files of the run in this folder, as long as the process of that number waits for them; the exit
    code."""
    from hwprof.run.directory import RunDirectory

    processes.end_with_parent(int(arguments[1]))

    try:
        write_files(RunDirectory.open(Path(arguments[0])))
    except HwprofError as error:
        sys.stdout.buffer.write(msgspec.json.encode(Failure(error.message, error.remedy)))
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
