"""Scalene's own file: lines with what they take, and the memory over time. Each field may be anything."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from hwprof.errors import HwprofError
from hwprof.printable import is_text

LARGEST_LINE: Final = 2**31 - 1
MOST_MB: Final = 1e9
LONGEST_S: Final = 366 * 24 * 3600
MOST_CORES: Final = 1e5
ROUNDING: Final = 1.001
"""Shares of one line may be a little above all, where Scalene adds them up."""

MB: Final = 1 << 20
"""Scalene's."""


@dataclass(frozen=True)
class LineCost:
    """What a line takes, of all that was profiled."""

    file: str
    line: int
    python_share: float
    native_share: float
    system_share: float
    core_utilization: float
    samples: int
    allocated_bytes: int
    peak_bytes: int
    python_allocated_share: float
    copy_bytes_per_s: float

    @property
    def costs(self) -> bool:
        """Whether it takes anything: lines of other threads than the main one have time, and no samples."""
        shares = self.python_share, self.native_share, self.system_share
        return any((*shares, self.samples, self.allocated_bytes, self.copy_bytes_per_s))


@dataclass
class Profile:
    """``elapsed_s`` of the profiled time; ``footprint``: ns since its begin, and bytes; ``refused``: lines that are
    none."""

    elapsed_s: float
    lines: list[LineCost] = field(default_factory=list)
    footprint: list[tuple[int, int]] = field(default_factory=list)
    refused: int = 0
    refused_points: int = 0  # of the footprint


def read(text: bytes) -> Profile:
    """Raises ``HwprofError`` where it is no profile of Scalene's."""
    try:
        known = msgspec.json.decode(text)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise HwprofError(f"Scalene's file cannot be read: {error}") from error
    files = known.get("files") if isinstance(known, dict) else None
    if not isinstance(files, dict):
        raise HwprofError("Scalene's file has no lines")
    elapsed_s = _number(known.get("elapsed_time_sec"), LONGEST_S)
    if elapsed_s is None:
        raise HwprofError("Scalene's file does not tell how long it looked")
    found = Profile(elapsed_s)
    for name, one in files.items():
        lines = one.get("lines") if isinstance(one, dict) else None
        for line in lines if isinstance(lines, list) else []:
            cost = _cost(name, line) if isinstance(line, dict) else None
            if cost is None:
                found.refused += 1
            elif cost.costs:
                found.lines.append(cost)
    samples = known.get("samples")
    for sample in samples if isinstance(samples, list) else []:
        point = _point(sample)
        if point is None:
            found.refused_points += 1
        else:
            found.footprint.append(point)
    return found


def shortened(text: bytes) -> bytes:
    """A profile without the lines that cost nothing: of most files all lines are in it."""
    known = msgspec.json.decode(text)
    for one in known["files"].values():
        if isinstance(one, dict) and isinstance(one.get("lines"), list):
            one["lines"] = [line for line in one["lines"] if isinstance(line, dict) and _is_active(line)]
    return msgspec.json.encode(known)


def _is_active(line: Mapping[str, Any]) -> bool:
    names = ("n_cpu_percent_python", "n_cpu_percent_c", "n_sys_percent", "n_malloc_mb", "n_copy_mb_s")
    return any(_number(line.get(name)) for name in names)


def _cost(file: str, line: Mapping[str, Any]) -> LineCost | None:
    number, times = line.get("lineno"), line.get("cpu_samples_list")
    percents = ("n_cpu_percent_python", "n_cpu_percent_c", "n_sys_percent")
    most = dict.fromkeys(percents, 100 * ROUNDING) | {"n_core_utilization": MOST_CORES}
    most |= {"n_malloc_mb": MOST_MB, "n_peak_mb": MOST_MB, "n_python_fraction": ROUNDING, "n_copy_mb_s": MOST_MB}
    values = [_number(line.get(name), largest) for name, largest in most.items()]
    if not (is_text(file) and type(number) is int and 0 < number <= LARGEST_LINE) or None in values:
        return None
    python, native, system, cores, allocated, peak, of_python, copied = (value or 0.0 for value in values)
    return LineCost(
        file=file,
        line=number,
        python_share=python / 100,
        native_share=native / 100,
        system_share=system / 100,
        core_utilization=cores,
        samples=len(times) if isinstance(times, list) else 0,
        allocated_bytes=round(allocated * MB),
        peak_bytes=round(peak * MB),
        python_allocated_share=of_python,
        copy_bytes_per_s=copied * MB,
    )


def _point(sample: Any) -> tuple[int, int] | None:
    if not isinstance(sample, list) or len(sample) != 2:
        return None
    since_ns, held = _number(sample[0], 1e9 * LONGEST_S), _number(sample[1], MOST_MB, least=-MOST_MB)
    return None if since_ns is None or held is None else (round(since_ns), round(held * MB))


def _number(known: Any, most: float = MOST_MB, least: float = 0.0) -> float | None:
    """None: it is none, or one that no machine has."""
    if isinstance(known, bool) or not isinstance(known, int | float):
        return None
    return float(known) if least <= known <= most else None
