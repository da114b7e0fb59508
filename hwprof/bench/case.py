"""A case's processes: ``python -m hwprof.bench.case CASE.json FOLDER [pyperf's options]``. The first one is pyperf's
manager, which starts this module again for each process that measures; torch is imported in those alone.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Final

import msgspec

from hwprof import processes
from hwprof.bench.matrix import Case
from hwprof.bench.samples import FAILURE_FILE, Failure
from hwprof.errors import NO_MEMORY, HwprofError, described, is_out_of_memory

PROGRAM: Final = ("-P", "-m", "hwprof.bench.case")
"""As ``processes.command`` has it."""


def main() -> int:
    """The exit code; why it failed is in the folder."""
    processes.end_with_parent()
    import pyperf

    runner = pyperf.Runner(program_args=PROGRAM, add_cmdline_args=_pass_on)
    runner.argparser.add_argument("case", type=Path)
    runner.argparser.add_argument("folder", type=Path)
    arguments = runner.parse_args()
    case = msgspec.json.decode(arguments.case.read_bytes(), type=Case)
    try:
        runner.bench_time_func(case.label, _timing(case, arguments), metadata={"hwprof_case": case.key})
    except HwprofError as error:
        return _failed(arguments, error.message, error.remedy)
    except Exception as error:  # whatever a model's code may raise; in pyperf's manager: that one of them failed
        if not arguments.worker:
            return 1
        return _failed(arguments, NO_MEMORY if is_out_of_memory(error) else described(error))
    return 0


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
