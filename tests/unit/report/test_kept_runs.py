"""The figures of three kept runs are what they were before the report's second schema, under their new names; those
of counters, which the third has in columns, row by row.

``before/`` of each run holds the JSON and the CSV files that hwprof made of it with ``schema_version`` 1.
"""

from __future__ import annotations

import copy
import csv
import gzip
import io
import json
import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from hwprof.analysis.instrumented_pass import INSTRUCTIONS, LEAST_OF_LAYER
from hwprof.report.csv.files import csv_files
from hwprof.report.document.builder import build
from hwprof.report.document.document import Document
from hwprof.report.document.kernels import INSTRUMENTED, Kernels
from hwprof.report.document.operators import LEAST_SELF
from hwprof.report.json.codec import encode
from hwprof.run.directory import RunDirectory

RUNS = Path(__file__).parents[2] / "fixtures" / "kept_runs"
NAMES = ("pmu-small", "smallnet-make", "yolov8n")

RENAMED = (
    (r"^observer_effect\b", "overhead"),
    (r"^closure\.closure$", "cpu_time.accounted_for"),
    (r"^closure\b", "cpu_time"),
    (r"^unattributed\b", "layers.unattributed"),
    (r"^inference\b", "layers.whole"),
    (r"^operators_coverage$", "operators.coverage"),
    (r"^traffic\b", "dram"),
    (r"^(stages|layers|layer_types|operators|energy|dram)(?=\.\d)", r"\1.rows"),
    (r"^sampled\b", "kernels"),
    (r"^waiting\b", "threads"),
    (r"^(kernels|threads)\.name$", r"\1.pass_name"),
    (r"^threads\.mixed_(share|layers)\b", r"threads.contaminated_\1"),
    (r"^(threads\.layers\.\d+)\.finding$", r"\1.largest_loss"),
    (r"^(kernels\.layers\.\d+(\.threads\.\d+)?)\.off_ns$", r"\1.off_cpu_ns"),
    (r"^(kernels\.kernels\..+)\.pieces$", r"\1.code_ranges"),
    (r"^followed\b", "instrumented.passes"),
    (r"^(instrumented\.passes\.\d+)\.apart$", r"\1.not_comparable"),
    (r"^(instrumented\.passes\.\d+)\.inference\b", r"\1.whole"),
    (r"^(instrumented\.passes\.\d+\.kernels\..+)\.value$", r"\1.instructions"),
)
"""Old paths in the JSON and their new ones, applied one after the other."""

WORDING = re.compile(
    r"^(schema_version|run\.path|notes|not_measured|workload\.notes|passes\.\d+\.collectors|hottest\.)"
    r"|(layers|layer_types|passes\.\d+)(\.rows)?\.(\d+|unattributed|whole)\.share$"  # of medians, no longer of sums
    r"|(^|\.)(notes|not_comparable|reason|remedy|meaning|caveat|cpi_meaning|title|reference)\b"
)
"""What is told in words, which may be told in others; what depends on where a run lies; and what is made otherwise."""

BY_TIME = re.compile(
    r"^kernels\.(layers|kernels)\..*\.(cpi|cpi_low|cpi_high|instructions)$"
    r"|^(stages|layers|layer_types)\..*\.metrics\.(cpi|ipc)$"
)
BY_TIME_COLUMNS = ("cpi", "ipc", "instructions")
"""CPI by samples' time is made otherwise since, and instructions of sampled kernels are those of all code."""

IN_A_LAYER = re.compile(
    r"^(instrumented\.passes\.\d+\.kernels\.(?!None/).*/(?:jit|torch|openmp|python|system|other))\."
)

FILES = {"steps.csv": "stages.csv", "waiting.csv": "threads.csv", "sampled_layers.csv": "layers_sampled.csv",
         "sampled_kernels.csv": "kernels_sampled.csv"}  # fmt: skip
HEADERS = {"processor_time_ns": "cpu_time_ns", "off_processor_time_ns": "off_cpu_time_ns", "pieces": "code_ranges"}
KERNEL = ("layer", "kernel", "library", "domain")
PATH = ("what", "iteration", "layer", "tid", "state")
"""What tells kernels, and parts of critical paths, apart."""

WORDS = {"hand-over": "barrier latency", "for a thread not seen": "unobserved thread",
         "elementwise": "no_macs"}  # fmt: skip
ROLES = {"main": "calling", "worker": "team"}
"""Of a layer's threads, now told as those of the run are."""


@pytest.fixture(scope="module", params=NAMES)
def kept(request: pytest.FixtureRequest) -> tuple[Path, Document]:
    path = RUNS / request.param
    return path, build(RunDirectory.open(path))


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every value with its path; what is empty or null has none."""
    if isinstance(value, dict):
        for key, one in value.items():
            yield from leaves(one, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for number, one in enumerate(value):
            yield from leaves(one, f"{path}.{place(one, number)}")
    elif value is not None:
        yield path, value


def in_rows(document: dict[str, Any]) -> dict[str, Any]:
    """The document with counters by row; the passes that are in its layers with rows of their own."""
    for name, key in (("stages", "name"), ("layers", "path"), ("layer_types", "type")):
        if document[name] is not None:
            spread_out(document[name], key)
    for one in (document["instrumented"] or {"passes": []})["passes"]:
        found = copy.deepcopy(one["layers"] or document["layers"])
        if one["layers"] is None:
            only(found, {event["name"] for event in one["events"]}, {metric["name"] for metric in one["metrics"]})
        else:
            spread_out(found, "path")
        one |= {"layers": found["rows"], "unattributed": found["unattributed"], "whole": found["whole"]}
        provenance = {event["name"]: event["provenance"] for event in one["events"]}
        for number, kernel in enumerate(one["kernels"]):
            values = {name: column[number] for name, column in one["kernel_counters"].items()}
            kernel["counters"] = {name: value for name, value in values.items() if value is not None}
            kernel["provenance"] = {name: provenance[name] for name in kernel["counters"]}
        del one["kernel_counters"]
    return document


def spread_out(table: dict[str, Any], key: str) -> None:
    """Each row's counters into the row."""
    counters = table.pop("counters")
    rows = [row for row in (*table["rows"], table.get("unattributed"), table.get("whole")) if row is not None]
    assert [row[key] for row in rows] == counters["of"]
    for number, row in enumerate(rows):
        row["counters"] = {
            name: {
                "provenance": column["provenance"],
                "iterations": column.get("iterations_of", {}).get(row[key], column["iterations"]),
                "running_share": 1.0,
                **{part: values[number] for part, values in column.items() if isinstance(values, list)},
            }
            for name, column in counters["events"].items()
            if any(values[number] is not None for values in column.values() if isinstance(values, list))
        }


def only(table: dict[str, Any], events: set[str], metrics: set[str]) -> None:
    """What a pass of its own tells."""
    for row in (*table["rows"], table["unattributed"], table["whole"]):
        if row is not None:
            row["counters"] = {name: row["counters"][name] for name in events & row["counters"].keys()}
            row["metrics"] = {name: row["metrics"][name] for name in metrics & row["metrics"].keys()}
            row["by_thread"] = {name: row["by_thread"][name] for name in metrics & row["by_thread"].keys()}
            row |= {"flops": None, "counting_ratio": None, "trace_ratio": None}


def place(row: Any, number: int) -> str:
    """What a row of a list is known by; those that are alike in what they are sorted by stand in any order."""
    if isinstance(row, dict) and "domain" in row:
        return "/".join(str(row[key]) for key in KERNEL)
    if isinstance(row, dict) and {"tid", "state"} <= set(row):
        return f"{row['tid']}/{WORDS.get(row['state'], row['state'])}"
    return str(number)


def renamed(path: str) -> str:
    for pattern, replacement in RENAMED:
        path = re.sub(pattern, replacement, path)
    return path


def left_out(name: str, known: dict[str, Any]) -> bool:
    """Whether it is too small to be listed since, 0 by thread, or told with the whole's row."""
    operator, kernel = re.match(r"operators\.rows\.\d+", name), IN_A_LAYER.match(name)
    if operator:
        return bool(known[f"{operator[0]}.share"] < LEAST_SELF)
    if kernel:
        return bool(known[f"{kernel[1]}.share"] < LEAST_OF_LAYER)
    if ".by_thread." in name:
        return bool(known[name] == 0)
    return name.endswith(".full_name") and re.match(r"kernels\.kernels\.(?!None/)", name) is not None


def same(old: Any, new: Any) -> bool:
    if isinstance(old, str):
        spelled = " ".join(map(spelled_today, old.split(" "))) if re.fullmatch(r"(\[[\d,[\]]*\] ?)+", old) else old
        for word, better in WORDS.items():
            spelled = spelled.replace(word, better)
        return new in (spelled, ROLES.get(old, spelled))
    if isinstance(old, bool) or new is None:
        return bool(old == new)
    return math.isclose(old, new, rel_tol=1e-9, abs_tol=1e-12)


def by_time(document: Document) -> bool:
    """Whether its CPI is that of samples' time."""
    kernels = document.part(Kernels)
    return kernels is not None and kernels.cpi_provenance == INSTRUMENTED


def unmeasured(name: str, values: dict[str, Any]) -> bool:
    """Whether it is the spread of a single value, which was once given as 0."""
    owner, _, figure = name.rpartition(".")
    repetitions = {"mad_ns": "repetitions", "mad": "iterations"}.get(figure)
    return repetitions is not None and values[f"{owner}.{repetitions}"] == 1


def spelled_today(shape: str) -> str:
    sizes = json.loads(shape)
    several = any(isinstance(size, list) for size in sizes)
    return f"({','.join(spelled_today(str(one)) for one in sizes)})" if several else "x".join(map(str, sizes))


def test_every_old_figure_is_in_the_json_under_its_new_name(kept: tuple[Path, Document]) -> None:
    path, document = kept
    old = json.loads(gzip.decompress((path / "before" / "document.json.gz").read_bytes()))
    new = dict(leaves(in_rows(json.loads(encode(document)))))
    known = {renamed(name): value for name, value in leaves(old)}
    compared = [
        (name, value)
        for name, value in known.items()
        if not (WORDING.search(name) or unmeasured(name, known) or (by_time(document) and BY_TIME.search(name)))
    ]
    different = [
        (name, value, new.get(name))
        for name, value in compared
        if not same(value, new.get(name)) and not (name not in new and left_out(name, known))
    ]
    assert different == []
    assert sum(not isinstance(value, str) for _, value in compared) > 500


def test_nothing_is_new_but_names(kept: tuple[Path, Document]) -> None:
    path, document = kept
    old = json.loads(gzip.decompress((path / "before" / "document.json.gz").read_bytes()))
    known = {renamed(name) for name, _ in leaves(old)}
    added = {name for name, _ in leaves(in_rows(json.loads(encode(document)))) if not WORDING.search(name)} - known
    later = re.compile(  # added to the second schema
        r"^(layers\.modules\.|overhead\.\w+\.(distinguishable|error)$|(kernels|threads)\.(.*\.)?threads_sharing$"
        r"|threads\.layers\.[1-9]\d*\.(path|elapsed_ns|samples)$"  # listed by the samples of all threads, not of one
        r"|primitives\.sampled_(from|reorders)|cpu_time\.(resolved|tick_ns|error)$|kernels\.few_for_shares$|kernels\..*\.unsampled_share$|threads\.threads\.\d+\.shares_work$|series\."
        r"|passes\.\d+\.bare$|(.*\.)?own$|layers\.(irregular|alike\..*|alike)$|noise\.|over_time\.|kernels\.(waiting\.|(.*\.)?waits$)"
        r"|threads\.unsampled_(threads$|blocked_ns\.)|threads\.threads\.\d+\.(iterations|elapsed_ns|unknown_ns)$|threads\.by_iteration\.\d+\.threads\."
        r"|kernels\.cpi_left_out\.|kernels\.(layers|kernels)\..*\.(cpi_missing|instructions)$"
        r"|(.*\.)?critical_path\.[^.]*\.cause$|kernels\.layers\.\d+\.cpi(_low|_high)?$"
        r"|primitives\.by_layer\.\d+\.(flops|bytes)$|throughput\..*"
        r"|findings\..*|roofline\..*|time_budget\..*|memory\.(pass|peak_pass)$"  # without allocations too
        r"|(.*\.)?own_missing(\.|$)|kernels\.kernels\.(?!None/)|operators\.(by_layer\.|tree\.|others_share$|iterations$|combinations$|self_ns$))"
    )
    assert {re.sub(r"\.\d+", "", name) for name in added if not later.search(name)} <= {
        "absent.stages.remedy", "dram.largest_error", *(f"absent.{name}.{what}" for name in document.absent
                                                        for what in ("reason", "remedy")),
    }  # fmt: skip


def test_every_old_column_is_in_the_csv_files(kept: tuple[Path, Document]) -> None:
    path, document = kept
    files = csv_files(document)
    compared = 0
    for kept_file in sorted((path / "before").glob("*.csv.gz")):
        rows = list(csv.reader(io.StringIO(gzip.decompress(kept_file.read_bytes()).decode())))
        name = FILES.get(kept_file.stem, kept_file.stem)
        if len(rows) < 2:  # the old files had headers where there was nothing to tell
            assert name not in files or not any(files[name].columns.values())
            continue
        columns: dict[str, Sequence[Any]] = dict(files[name].columns)
        for keys in (KERNEL, PATH):
            if set(keys) < set(columns):
                columns, rows = in_order(keys, columns, rows)
        if name == "operators.csv":
            number, share = len(columns["operator"]) + 1, rows[0].index("share_of_operators_ratio")
            assert all(float(row[share]) < LEAST_SELF for row in rows[number:])
            rows = rows[:number]
        for header, *cells in zip(*rows, strict=True):
            if header.endswith(("reason", "remedy")):
                continue
            if header == "share_ratio" and name in ("layers.csv", "layer_types.csv"):
                continue  # of medians since, no longer of sums
            if name == "layers_sampled.csv" and header == "cpi_cycles_per_instruction" and header not in columns:
                continue  # of samples without counters it was empty, and has another name since
            if by_time(document) and header.startswith(BY_TIME_COLUMNS):
                continue
            found = columns[HEADERS.get(header, header)]
            assert len(found) == len(cells)
            for old, new in zip(cells, found, strict=True):
                unmeasured_spread = "_mad" in header and new is None and float(old or 0) == 0
                assert unmeasured_spread or same_cell(old, new), (name, header, old, new)
                compared += bool(old)
    assert compared > 300


def in_order(
    keys: tuple[str, ...], columns: dict[str, Sequence[Any]], rows: list[list[str]]
) -> tuple[dict[str, Sequence[Any]], list[list[str]]]:
    """Both sorted by these columns. Of kernels those that are old and new; an old one that is not may only be too small
    to be listed since."""
    places = [rows[0].index(key) for key in keys]
    cells = zip(*(columns[key] for key in keys), strict=True)
    new = [["" if cell is None else str(cell) for cell in row] for row in cells]
    old = [[WORDS.get(row[at], row[at]) for at in places] for row in rows[1:]]
    listed = [keys != KERNEL or old[row] in new or not too_small(rows[0], rows[1 + row]) for row in range(len(old))]
    known = [row for row, is_listed in enumerate(listed) if is_listed]
    order = [row for row, key in enumerate(new) if key in old or keys != KERNEL]
    ordered: dict[str, Sequence[Any]] = {
        header: [column[row] for row in sorted(order, key=new.__getitem__)] for header, column in columns.items()
    }
    return ordered, [rows[0], *(rows[1 + row] for row in sorted(known, key=old.__getitem__))]


def too_small(header: list[str], row: list[str]) -> bool:
    """To be listed: of a layer's instructions, as a pass counted them."""
    layer, share = (row[header.index(name)] for name in ("layer", "share_ratio"))
    return any(name.endswith(INSTRUCTIONS) for name in header) and layer != "" and float(share) < LEAST_OF_LAYER


def same_cell(old: str, new: Any) -> bool:
    if old == "" or new is None:
        return old == "" and new in (None, "")
    if isinstance(new, str):
        return same(old, new)
    return math.isclose(float(old), new, rel_tol=1e-9, abs_tol=1e-12)
