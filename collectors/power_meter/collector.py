"""The collector ``power_meter``: joules of the whole machine by a meter that hwprof knows nothing of.

Its readings become a cumulative series like those of RAPL, so that all else is made as of these. Lines with times are
put on CLOCK_MONOTONIC by the machine's own clock, lines without have the moment at which they came.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import polars as pl

from collectors.power_meter.energy import Energy, joules
from collectors.power_meter.lines import Read, Reader, read
from collectors.power_meter.program import Program, words
from hwprof.collector import clocks
from hwprof.collector.contract import (
    Availability,
    ClockRecord,
    Collected,
    Collector,
    Note,
    NoteKind,
    PassContext,
    Tool,
)
from hwprof.errors import HwprofError, UsageError
from hwprof.printable import one_line
from hwprof.run.details import METER, EnergyDetail
from hwprof.run.regular_files import is_regular, may_exist, read_regular

ZONE: Final = METER
CLOCK: Final = "power meter"

LARGEST_BYTES: Final = 256 << 20
"""Of a file of watts: some years of a reading a second."""

FORM: Final = "a line a reading: watts, or time and watts; of more columns a header names the power"

RIGHT: Final = "set the clock of the meter's machine (NTP), or leave the times out: a line counts when it comes"

CLOCK_OFF_NS: Final = 500_000_000
"""By so much at least a time and the moment at which its line came have to differ: buffers hold lines back."""

GOES_ON: Final = "a program that goes on, a line a reading, until it is ended"

FLUSH: Final = "a program that writes the time before the watts, or each line at once: python -u, stdbuf -oL"


class PowerMeterDetail(EnergyDetail, kw_only=True, tag="energy"):
    """Where the readings are from, and how many of the pass there are."""

    source: str
    readings: int


class PowerMeterCollector(Collector):
    """One program or file for each pass."""

    def __init__(self) -> None:
        self._program: Program | None = None
        self._file: Path | None = None
        self._source = ""
        self._marks: list[tuple[int, int, int]] = []
        self._begin_ns = 0

    def availability(self) -> Availability:
        """Everywhere; whether there is a meter, the options say."""
        return Availability()

    def check_options(self, options: dict[str, Any]) -> None:
        """Either a program or a file. Raises ``UsageError``."""
        command, file = options.get("power_command"), options.get("power_file")
        if (command is None) == (file is None):
            raise UsageError("either --power-command or --power-file", "--power-command 'program arguments'")
        if command is not None:
            words(command)
        elif not is_regular(Path(file or "")):
            what = "it is no regular file" if may_exist(Path(file or "")) else "there is no such file"
            raise UsageError(f"--power-file {file!r}: {what}", "begin to write it first")

    def start(self, context: PassContext) -> None:
        """Begins to hear the program. Raises ``HwprofError``."""
        self.check_options(context.options)
        self._begin_ns = time.monotonic_ns()
        self._marks.append(_now())
        command = context.options.get("power_command")
        self._source = str(command or context.options["power_file"])
        if command is None:
            self._file = Path(context.options["power_file"]).absolute()
            return
        self._program = Program(words(command))
        self._program.begin()

    def stop(self) -> Collected:
        """The pass's readings. Raises ``HwprofError`` where there are none."""
        program, file = self._program, self._file
        if program is None and file is None:
            return Collected()
        end_ns = time.monotonic_ns()
        self._marks.append(_now())
        clock = clocks.fit(CLOCK, self._marks)
        notes = [Note(NoteKind.SCOPE, "of all that the meter measures, hwprof knows not what", "energy")]
        if program is not None:
            program.end()
            notes += _of_program(program)
            found, times_ns, off_ns = _of_lines(program.lines, clock)
        else:
            assert file is not None
            found, times_ns = _of_file(file, clock)
            off_ns = 0
        within = [one for one in times_ns if self._begin_ns <= one[0] <= end_ns]
        energy = joules(within)
        if len(energy.times_ns) < 2:
            raise HwprofError(*_too_few(self._source, len(energy.times_ns), len(times_ns), program))
        timed = bool(found.readings) and found.readings[0][0] is not None
        notes += [*_of_readings(found, energy), *_of_clock(off_ns)]
        detail = PowerMeterDetail(
            zones=[ZONE],
            period_ms=_period_ms(energy),
            refresh_ms={ZONE: 0.0},  # each reading is of its own time
            late_ms={ZONE: (clock.error_ns + abs(off_ns)) / 1e6 if timed else _period_ms(energy) / 2},
            of_power=[ZONE],
            source=self._source,
            readings=len(energy.times_ns),
        )
        known = [clock] if timed else []
        tools = [] if program is None else [_tool(program, known)]
        return Collected({"series": _series(energy)}, notes, detail, clocks=known, tools=tools)


def _tool(program: Program, known: Sequence[ClockRecord]) -> Tool:
    return Tool(name="power meter", command=program.command, clock=known[0].name if known else None)


def _now() -> tuple[int, int, int]:
    """A mark of the machine's clock: unix time between two readings of CLOCK_MONOTONIC."""
    before_ns = time.monotonic_ns()
    unix_ns = time.time_ns()
    return unix_ns, before_ns, time.monotonic_ns()


def _of_lines(lines: Sequence[tuple[int, str]], clock: ClockRecord) -> tuple[Read, list[tuple[int, float]], int]:
    """Readings, with their times on CLOCK_MONOTONIC: their own, else when they came; and by how much their times are
    ahead of when they came, all of them (negative: behind; 0: by little)."""
    reader, readings, times_ns, ahead_ns = Reader(), [], [], []
    for came_ns, line in lines:
        found = reader.reading(line)
        if found is not None:
            unix_ns, watts = found
            readings.append(found)
            at_ns = came_ns if unix_ns is None else clocks.to_monotonic(clock, unix_ns)
            times_ns.append((at_ns, watts))
            ahead_ns.append(at_ns - came_ns)
    off_ns = max(ahead_ns, default=0)  # the line that came soonest: others were held back
    return Read(readings, reader.refused), times_ns, off_ns if abs(off_ns) > CLOCK_OFF_NS else 0


def _too_few(source: str, number: int, of: int, program: Program | None) -> tuple[str, str]:
    """What is said, and what to do."""
    told = f"{source}: {number} readings during the pass"
    if program is not None and program.lines and not of:
        told += f", none in {len(program.lines)} line{'s' * (len(program.lines) > 1)}"
    if program is not None and program.gone is not None:
        *_, last = ["", *(line for line in program.errors.decode(errors="replace").splitlines() if line.strip())]
        said = f": {one_line(last)}" if last else ""
        return f"{told}: the program ended, status {program.gone}{said}", GOES_ON
    if of > number + 1:
        return f"{told}, {of - number} before or after it", RIGHT
    return told, FORM


def _of_clock(off_ns: int) -> list[Note]:
    if not off_ns:
        return []
    where = "ahead of" if off_ns > 0 else "behind"
    text = f"the meter's times are {abs(off_ns) / 1e9:.1f} s {where} the moments at which its lines came"
    return [Note(NoteKind.INCOMPLETE, text, ZONE, RIGHT)]


def _of_file(file: Path, clock: ClockRecord) -> tuple[Read, list[tuple[int, float]]]:
    """Readings without a time are refused: nobody knows when they were. Raises ``HwprofError``."""
    try:
        text = read_regular(file, LARGEST_BYTES).decode(errors="replace")
    except OSError as error:
        raise HwprofError(f"{file} cannot be read: {error.strerror}") from error
    found = read(text.splitlines())
    timed = [(clocks.to_monotonic(clock, unix_ns), watts) for unix_ns, watts in found.readings if unix_ns is not None]
    found.refused += len(found.readings) - len(timed)
    return found, timed


def _of_program(program: Program) -> list[Note]:
    notes = []
    if program.gone is not None:
        notes.append(Note(NoteKind.INCOMPLETE, f"the program ended before the pass, status {program.gone}", ZONE))
    if program.cut:
        notes.append(Note(NoteKind.INCOMPLETE, f"{program.cut} lines left out: too long, or too many", ZONE))
    return notes


def _of_readings(found: Read, energy: Energy) -> list[Note]:
    texts = {
        f"{found.refused} lines are no readings": (found.refused, FORM),
        f"{energy.backwards} readings left out: their time goes back": (energy.backwards, FORM),
        f"{energy.at_once} readings left out: they came together with another one": (energy.at_once, FLUSH),
    }
    return [Note(NoteKind.INCOMPLETE, text, ZONE, remedy) for text, (number, remedy) in texts.items() if number]


def _period_ms(energy: Energy) -> float:
    steps = [after - before for before, after in zip(energy.times_ns, energy.times_ns[1:], strict=False)]
    return statistics.median(steps) / 1e6


def _series(energy: Energy) -> pl.DataFrame:
    """Rows of ``series``."""
    rows = {"time_ns": energy.times_ns, "value": energy.joules}
    return pl.DataFrame(rows).with_columns(name=pl.lit(f"energy/{ZONE}"), unit=pl.lit("J"))
