"""A bench's table: on a terminal in its width, and whole as Markdown and CSV."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

import msgspec
from rich.console import Console
from rich.text import Text

from hwprof.bench.rows import Row
from hwprof.printable import one_line
from hwprof.report.csv.table import Table
from hwprof.report.text import energy, figures, variant
from hwprof.report.text.figures import ASCII, UNICODE, Glyphs
from hwprof.report.text.grid import Column, fit, table, whole_width
from hwprof.run.peaks import NOISY
from hwprof.run.trials import Difference
from hwprof.run.variants import MatchedBoxes, VariantRecord
from hwprof.unavailable import explain

MB: Final = 1e6
TENS: Final = 10
SHORT: Final = 0.5
"""Of the time that a value is to take."""

LEAST_RATIO: Final = 0.1
"""That has two decimals."""

NESTED: Final[Mapping[str, type[msgspec.Struct]]] = MappingProxyType({"outputs": Difference, "boxes": MatchedBoxes})
"""Fields of a row that have fields."""

LEAST_ERROR: Final = 0.005
"""Of a ratio, that is told: half of its last digit."""

LEAST_SIZE: Final = 0.001
"""In millions, MB or GFLOPs, that has digits."""

FEW: Final = 3
"""Cases that are named where something is the same of all."""

LEAST_NAME: Final = 12
LEAST_VARIANT: Final = 22


class _Shown(NamedTuple):
    """A column: its header, what a row's cell says, when it goes, whether it is one of numbers, and whether it stands
    there though all rows have the same."""

    header: str
    cell: Callable[[Row, Glyphs], str]
    priority: int = 0
    right: bool = True
    always: bool = True


def _number(read: Callable[[Row], float | None], text: Callable[[float], str]) -> Callable[[Row, Glyphs], str]:
    def cell(row: Row, glyphs: Glyphs) -> str:
        value = read(row)
        return glyphs.dash if value is None else text(value)

    return cell


def _ratio(number: float) -> str:
    return f"{number:.2f}" if number >= LEAST_RATIO else f"{number:.1g}"


def _or_less(number: float) -> str:
    """Of sizes: of very small ones nobody counts the zeros."""
    return figures.three_digits(number) if number >= LEAST_SIZE or not number else f"<{LEAST_SIZE}"


def _agrees(row: Row, glyphs: Glyphs) -> str:
    return variant.agreement(VariantRecord([], row.outputs, row.boxes), glyphs, brief=True) or ""


def _times(row: Row, glyphs: Glyphs) -> str:
    """With half of its interval, in no more digits than that leaves."""
    ratio, error = row.times_as_fast, row.times_as_fast_error or 0.0
    if ratio is None:
        return glyphs.dash
    if error < LEAST_ERROR:
        return _ratio(ratio)
    digits = max(0, -math.floor(math.log10(error)))
    return f"{ratio:.{digits}f} {glyphs.plus_minus}{error:.{digits}f}"


def _joules(row: Row, glyphs: Glyphs) -> str:
    return _known(row.joules_per_image, row, glyphs)


def _joules_of_own(row: Row, glyphs: Glyphs) -> str:
    return _known(row.joules_per_forward if row.batch is None else None, row, glyphs)


def _known(joules: float | None, row: Row, glyphs: Glyphs) -> str:
    return glyphs.dash if _is_vague(row) else energy.with_error(joules, row.joules_error, glyphs)


def _is_vague(row: Row) -> bool:
    """Whether the error is above the value, which has a dash then."""
    joules = row.joules_per_image if row.joules_per_image is not None else row.joules_per_forward
    return joules is not None and (row.joules_error is None or row.joules_error >= joules)


COLUMNS: Final = (
    _Shown("machine", lambda row, _: row.machine or "", right=False, always=False),
    _Shown("model", lambda row, _: row.model if row.weights is None else f"{row.model} {row.weights}", right=False),
    _Shown("variant", lambda row, _: row.variant, right=False, always=False),
    _Shown("size", _number(lambda row: row.imgsz, str), always=False),
    _Shown("batch", _number(lambda row: row.batch, str), always=False),
    _Shown("threads", _number(lambda row: row.threads, str), 1, always=False),
    _Shown("M params", _number(lambda row: row.parameters, lambda n: _or_less(n / 1e6)), 5),
    _Shown("MB", _number(lambda row: row.size_bytes, lambda n: _or_less(n / MB)), 8),
    _Shown("GFLOPs", _number(lambda row: row.gflops, lambda n: _or_less(n)), 6),
    _Shown("ms", _number(lambda row: row.forward_ns, figures.milliseconds)),
    _Shown("p90", _number(lambda row: row.forward_p90_ns, figures.milliseconds), 4),
    _Shown("p99", _number(lambda row: row.forward_p99_ns, figures.milliseconds), 7),
    _Shown("images/s", _number(lambda row: row.images_per_s, figures.three_digits), 2),
    _Shown(
        "forwards/s",
        _number(lambda row: row.forwards_per_s if row.images_per_s is None else None, figures.three_digits),
        2,
    ),
    _Shown("end to end", _number(lambda row: row.end_to_end_per_s, figures.three_digits), 9),
    _Shown("of peak", _number(lambda row: row.share_of_peak, lambda share: f"{share:.0%}"), 3),
    _Shown("bound", lambda row, glyphs: row.bound or glyphs.dash, 11, right=False),
    _Shown("J/image", _joules, 2),
    _Shown("J/forward", _joules_of_own, 2),
    _Shown("peak MB", _number(lambda row: row.peak_bytes, lambda n: f"{n / MB:,.0f}"), 10),
    _Shown("x eager", _times, 1),
    _Shown("agrees", _agrees, 1, right=False),
)


def show(rows: Sequence[Row], console: Console) -> None:
    """As wide as the console; what could not be measured below it."""
    glyphs = UNICODE if console.encoding.lower().startswith("utf") else ASCII
    measured = [row for row in rows if row.failure is None]
    if measured:
        columns = [
            Column(shown.header, cells, shown.priority, shown.right, least=_least(shown.header))
            for shown, cells in columns_of(measured, glyphs)
        ]
        wanted = whole_width(columns)
        shown_columns = fit(columns, console.width)
        console.print(table(shown_columns, glyphs))
        if hidden := [one.header for one in columns if one not in shown_columns]:
            width = f"Try: --width {-(-wanted // TENS) * TENS}"
            console.print(Text(f"not shown: {', '.join(hidden)}. {width}", "dim", overflow="fold"))
    for line in notes(rows):
        console.print(Text(line, overflow="fold"))
    for line in failures(rows):
        console.print(Text(f"not measured: {line}", overflow="fold"))


def notes(rows: Sequence[Row]) -> list[str]:
    """What is to be known of single rows."""
    return [f"{_name(row)}: {one_line(note)}" for row in rows for note in row.notes]


def failures(rows: Sequence[Row]) -> list[str]:
    """Why cases could not be measured, once for all of which it is the same."""
    names: dict[tuple[str, str | None], list[str]] = {}
    for row in rows:
        if row.failure is not None:
            names.setdefault((row.failure, row.remedy), []).append(_name(row))
    return [f"{_few(of)}: {one_line(explain(failure, remedy))}" for (failure, remedy), of in names.items()]


def _few(names: Sequence[str]) -> str:
    if len(names) <= FEW:
        return ", ".join(names)
    return f"{', '.join(names[: FEW - 1])} and {len(names) - FEW + 1} others"


def _least(header: str) -> int | None:
    return {"model": LEAST_NAME, "variant": LEAST_VARIANT}.get(header)


def _name(row: Row) -> str:
    sizes = [str(row.imgsz)] if row.imgsz is not None else []
    words = [row.model, row.variant, *sizes, *([f"b{row.batch}"] if row.batch is not None else [])]
    return one_line(" ".join(words))


def columns_of(rows: Sequence[Row], glyphs: Glyphs) -> list[tuple[_Shown, list[str]]]:
    """Those in which something is known, and that tell rows apart or are always there."""
    found = []
    for shown in COLUMNS:
        cells = [one_line(shown.cell(row, glyphs)) for row in rows]
        if set(cells) <= {"", glyphs.dash} or (not shown.always and len(set(cells)) == 1 and len(rows) > 1):
            continue
        found.append((shown, cells))
    return found


def noise(rows: Sequence[Row]) -> str | None:
    """Where others used the machine meanwhile."""
    disturbed = [row for row in rows if (row.others_share or 0.0) > NOISY]
    if not disturbed:
        return None
    most = max(disturbed, key=lambda row: row.others_share or 0.0)
    others = f" and {figures.plural(len(disturbed) - 1, 'other case')}" if len(disturbed) > 1 else ""
    used = f"up to {most.others_share:.0%} of the processors"
    return f"noisy: other programs used {used} during {_name(most)}{others}"


def energy_told(rows: Sequence[Row]) -> str | None:
    """What ``J/image`` is of, or why there is none."""
    meters = sorted({row.meter for row in rows if row.meter is not None})
    what = "J/image" if any(row.joules_per_image is not None for row in rows) or not meters else "J/forward"
    if meters:
        told = f"{what}: the mean, with all stages, of all that the meter measures ({', '.join(meters)})"
        vague = sum(map(_is_vague, rows))
        of = figures.plural(len(rows), "row")
        return explain(f"{told}; error above the value in {vague} of {of}", "--min-time 1") if vague else told
    reasons = list(dict.fromkeys(row.no_joules for row in rows if row.no_joules is not None))
    return f"no {what}: {reasons[0]}" if reasons else None


def remarks(rows: Sequence[Row], min_time_s: float) -> list[str]:
    """What must be known of figures that are odd."""
    short = sum(row.value_s is not None and row.value_s < SHORT * min_time_s for row in rows)
    above = any((row.share_of_peak or 0.0) > 1 for row in rows)
    other = any(row.share_of_peak is None and row.gflops_per_s is not None for row in rows)
    of_peak = any(row.share_of_peak is not None for row in rows)
    alone = sum(row.times_as_fast is not None and row.times_as_fast_error is None for row in rows)
    short_of = f"values of {figures.plural(short, 'case')} are shorter than --min-time {min_time_s:g}"
    found = {
        explain(f"{short_of}: the machine was busy while their length was chosen", "end other programs"): short,
        explain("no error of x eager: processes were too few, or an older version's", "--processes 3"): alone,
        "of peak above 100%: faster than PyTorch's own large FP32 product (hwprof peaks)": above,
        "of peak and bound are known of FP32 alone": other and of_peak,
    }
    return [line for line, holds in found.items() if holds]


def common(rows: Sequence[Row]) -> str:
    """What all rows have in common and no column says: ``size 640, batch 1, 2 threads``."""
    measured = [row for row in rows if row.failure is None]
    if len(measured) < 2:
        return ""
    parts = []
    for text, values in (
        ("{}", {row.variant for row in measured}),
        ("size {}", {row.imgsz for row in measured}),
        ("batch {}", {row.batch for row in measured}),
        ("threads {}", {row.threads for row in measured}),
    ):
        if len(values) == 1 and (value := values.pop()) is not None:
            parts.append(text.format(value))
    return one_line(", ".join(parts))


def markdown(rows: Sequence[Row], told: Sequence[str]) -> str:
    """The whole table, below what is ``told`` of it."""
    measured = [row for row in rows if row.failure is None]
    lines = [*(f"{one_line(line)}  " for line in told), ""]
    if measured:
        columns = columns_of(measured, UNICODE)
        lines.append("| " + " | ".join(shown.header for shown, _ in columns) + " |")
        lines.append("| " + " | ".join("---:" if shown.right else "---" for shown, _ in columns) + " |")
        every = zip(*(cells for _, cells in columns), strict=True)
        lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |" for cells in every]
    lines += ["", *(f"- {line}" for line in notes(rows))]
    lines += [f"- not measured: {line}" for line in failures(rows)]
    return "\n".join(lines).strip() + "\n"


def csv_table(rows: Sequence[Row]) -> Table:
    """Every field of the rows in full, nested ones by their dotted names; the same columns whatever is known."""
    flat = [_flat(row) for row in rows]
    return Table({name: [one.get(name) for one in flat] for name in _columns_of_csv()})


def _columns_of_csv() -> list[str]:
    return [
        name
        for field in Row.__struct_fields__
        for name in ([f"{field}.{inner}" for inner in NESTED[field].__struct_fields__] if field in NESTED else [field])
    ]


def _flat(row: Row) -> dict[str, object]:
    found: dict[str, object] = {}
    for name, value in msgspec.to_builtins(row).items():
        if isinstance(value, dict):
            found.update({f"{name}.{inner}": one for inner, one in value.items()})
        else:
            found[name] = "; ".join(value) if isinstance(value, list) else value
    return found
