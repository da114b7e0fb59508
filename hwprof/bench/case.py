"""A case's processes: ``python -m hwprof.bench.case CASE.json FOLDER [pyperf's options]``. The first one is pyperf's
manager, which starts this module again for each process that measures; torch is imported in those alone.
"""

from __future__ import annotations

import re
import signal
import sys
from pathlib import Path
from typing import Any, Final

import msgspec

from hwprof import processes
from hwprof.bench.matrix import Case
from hwprof.bench.samples import FAILURE_FILE, Failure
from hwprof.errors import NO_MEMORY, HwprofError, described, is_out_of_memory

EXIT_CODE: Final = re.compile(r"exit code (-?\d{1,9})")
LOG_FILE: Final = "log.txt"

PROGRAM: Final = ("-P", "-m", "hwprof.bench.case")
"""As ``processes.command`` has it."""


def main() -> int:
    """The exit code; why it failed is in the folder."""
    processes.end_with_parent()
    processes.keep_orphans()  # what the model's code starts ends here, whatever session it is in
    try:
        code, worker = _carried_out()
    finally:
        processes.end_descendants()
    if worker:  # all is written; threads that the model's code has left, and what it does at exit, nobody waits for
        processes.leave(code)
    return code


def _carried_out() -> tuple[int, bool]:
    """The exit code, and whether this process has the model in it."""
    import pyperf

    runner = pyperf.Runner(program_args=PROGRAM, add_cmdline_args=_pass_on)
    runner.argparser.add_argument("case", type=Path)
    runner.argparser.add_argument("folder", type=Path)
    arguments = runner.parse_args()
    case = msgspec.json.decode(arguments.case.read_bytes(), type=Case)
    try:
        runner.bench_time_func(case.label, _timing(case, arguments), metadata={"hwprof_case": case.key})
    except HwprofError as error:
        return _failed(arguments, error.message, error.remedy), arguments.worker
    except Exception as error:  # whatever a model's code may raise; in pyperf's manager: that one of them failed
        if arguments.worker:
            return _failed(arguments, NO_MEMORY if is_out_of_memory(error) else described(error)), True
        if not (arguments.folder / FAILURE_FILE).exists():
            return _ended(arguments, str(error)), False
        return 1, False
    return 0, arguments.worker


def _ended(arguments: Any, said: str) -> int:
    """What pyperf says of a process that did not come to its end."""
    found = EXIT_CODE.search(said)
    if found is None:
        return _failed(arguments, said)
    code = int(found[1])
    how = f"was ended by {_signal(-code)}" if code < 0 else f"ended with exit code {code}"
    return _failed(arguments, f"a process of it {how}", f"see {arguments.folder / LOG_FILE}")


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _timing(case: Case, arguments: Any) -> Any:
    from hwprof.bench.timing import Timing

    calibrates = bool(arguments.calibrate_loops or arguments.recalibrate_loops)
    return Timing(case, arguments.folder, arguments.warmups, describes=calibrates)


def _failed(arguments: Any, message: str, remedy: str | None = None) -> int:
    (arguments.folder / FAILURE_FILE).write_bytes(msgspec.json.encode(Failure(message, remedy)))
    return 1


def _pass_on(command: list[str], arguments: Any) -> None:
    command += [str(arguments.case), str(arguments.folder)]


if __name__ == "__main__":
    sys.exit(main())
