"""Runs of which a file changed, went, became something else, or says what nobody measured."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, Final

from scripts.faults.case import Case
from scripts.faults.kinds.odd_values import odd_value
from tests.support import synthetic_run
from tests.support import synthetic_variants as variants

IMPORTS: Final = "hwprof.cli.app,hwprof.cli.report,hwprof.analysis.run_analysis,hwprof.report.json.kept,numpy"

TEMPLATES: Final[dict[str, Callable[[Path], Any]]] = {
    "complete": synthetic_run.build,
    "sampled": variants.sampled,
    "without_pmu": variants.sampled_without_pmu,
    "hybrid": variants.hybrid,
    "kernels": variants.kernels_under_roofs,
}

PAGES: Final = (
    (), ("--all",), ("--findings",), ("--roofline",), ("--kernels",), ("--memory",), ("--python",), ("--lines",),
    ("--energy",), ("--operators",), ("--format", "json"), ("--layer", "model.0"), ("--metrics", "cpi,cache"),
    ("--kernels", "--format", "json"), ("--all", "--width", "60"),
)  # fmt: skip

MANIFEST: Final = "run.json"
DERIVED: Final = ("document.json",)


def shared(root: Path) -> list[Path]:
    """The runs that cases are made of, below ``root``."""
    from hwprof.report.json.kept import document_of
    from hwprof.run import digests

    found = []
    for name, build in TEMPLATES.items():
        run = build(root / name)
        run.manifest.tables = {file.stem: [digests.of_file(file)] for file in run.path.glob("*.parquet")}
        run.save_manifest()
        document_of(run)
        found.append(run.path)
    return found


def case(random: Random, folder: Path, templates: list[Path]) -> Case:
    """One run with some faults in it, and a page of its report."""
    template = random.choice(templates)
    run = folder / "results" / template.name
    shutil.copytree(template, run, symlinks=True)
    if random.random() < 0.7:  # else what is kept of it is shown
        (run / DERIVED[0]).unlink()
    done = [random.choice(FAULTS)(random, run) for _ in range(random.choice((1, 1, 1, 2, 3)))]
    page = random.choice(PAGES)
    kept = [file for file in sorted(run.rglob("*")) if file.is_file() and file.name not in DERIVED]
    return Case(
        f"{template.parent.name}: {'; '.join(done)}; report {' '.join(page)}",
        ("report", str(run), *page) if random.random() < 0.8 else ("report", *page),
        unchanged=kept,
    )


def _a_file(random: Random, run: Path) -> Path:
    files = sorted(file for file in run.iterdir() if file.is_file())
    return random.choice(files) if files else run / MANIFEST


def _flip(random: Random, run: Path) -> str:
    file = _a_file(random, run)
    data = bytearray(file.read_bytes() if file.is_file() else b"")
    if not data:
        return f"{file.name} has no bit"
    bit = random.randrange(8 * len(data))
    data[bit // 8] ^= 1 << bit % 8
    _written_in_place(file, bytes(data), keep_time=random.random() < 0.5)
    return f"bit {bit} of {file.name} flipped"


def _cut(random: Random, run: Path) -> str:
    file = _a_file(random, run)
    data = file.read_bytes() if file.is_file() else b""
    end = random.randrange(len(data) + 1)
    _written_in_place(file, data[:end], keep_time=random.random() < 0.5)
    return f"{file.name} cut at {end}"


def _noise(random: Random, run: Path) -> str:
    file = _a_file(random, run)
    data = bytearray(file.read_bytes() if file.is_file() else b"")
    begin = random.randrange(len(data) + 1)
    data[begin : begin + random.choice((1, 8, 200))] = random.randbytes(random.choice((1, 8, 200)))
    _written_in_place(file, bytes(data), keep_time=False)
    return f"noise in {file.name} at {begin}"


def _written_in_place(file: Path, data: bytes, *, keep_time: bool) -> None:
    status = file.stat() if file.exists() else None
    if file.is_dir():
        return
    file.write_bytes(data)
    if keep_time and status is not None:
        os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))


def _gone(random: Random, run: Path) -> str:
    file = _a_file(random, run)
    file.unlink(missing_ok=True)
    return f"{file.name} is gone"


def _exchanged(random: Random, run: Path) -> str:
    one, other = _a_file(random, run), _a_file(random, run)
    if one.is_file() and other.is_file():
        data = one.read_bytes()
        one.write_bytes(other.read_bytes())
        other.write_bytes(data)
    return f"{one.name} and {other.name} exchanged"


def _other_kind(random: Random, run: Path) -> str:
    file = _a_file(random, run)
    file.unlink(missing_ok=True)
    kind = random.choice(("folder", "pipe", "endless", "nowhere", "itself"))
    if kind == "folder":
        file.mkdir()
    elif kind == "pipe":
        os.mkfifo(file)
    else:
        file.symlink_to({"endless": "/dev/zero", "nowhere": "/nonexistent", "itself": file.name}[kind])
    return f"{file.name} is a {kind}"


def _manifest(run: Path) -> Any:
    """What it says; None where it is none any more: nobody would ever write to a pipe in its place."""
    file = run / MANIFEST
    try:
        return json.loads(file.read_text()) if file.is_file() else None
    except (OSError, ValueError):
        return None


def _odd_manifest(random: Random, run: Path) -> str:
    """A value of it becomes another one, and nothing tells that it was changed."""
    content = _manifest(run)
    if content is None:
        return "no manifest to change"
    places = list(_places(content))
    if not places:
        return "no value to change"
    holder, key, path = random.choice(places)
    if random.random() < 0.15 and isinstance(holder, dict):
        del holder[key]
        what = "left out"
    else:
        holder[key] = odd_value(random, holder[key])
        what = f"{holder[key]!r:.60}"
    if random.random() < 0.8 and isinstance(content, dict):
        content.pop("tables", None)  # an older version's
    (run / MANIFEST).write_text(json.dumps(content))
    return f"run.json: {path} {what}"


def _places(value: Any, path: str = "") -> Any:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield value, key, f"{path}.{key}"
        yield from _places(inner, f"{path}.{key}")


def _odd_table(random: Random, run: Path) -> str:
    """A cell, or a column, of a table becomes another one, of the right type, and nothing tells it."""
    import polars as pl

    files = sorted(run.glob("*.parquet"))
    files = [file for file in files if file.is_file() and not file.is_symlink()]
    if not files:
        return "no table to change"
    file = random.choice(files)
    try:
        frame = pl.read_parquet(file, glob=False)
        name = random.choice(frame.columns)
        kind = frame.schema[name]
        value = odd_value(random, frame[name][0] if frame.height else None)
        odd = pl.Series(name, [value], strict=True).cast(kind)
        row = random.randrange(frame.height + 1)
        changed = pl.concat([frame[:row], frame[row : row + 1].with_columns(odd), frame[row + 1 :]])
        if random.random() < 0.2:
            changed = frame.with_columns(pl.lit(odd[0], dtype=kind).alias(name))
        changed.write_parquet(file)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OverflowError, TypeError, ValueError, OSError):
        # a value that the column cannot have, or no table any more
        return f"{file.name} as it was"
    content = _manifest(run)
    if not isinstance(content, dict):
        return f"{file.name}: {name} {value!r:.60}, and no manifest"
    content.pop("tables", None)
    (run / MANIFEST).write_text(json.dumps(content))
    return f"{file.name}: {name} {value!r:.60}"


FAULTS: Final = (_flip, _cut, _noise, _gone, _exchanged, _other_kind, *[_odd_manifest] * 4, *[_odd_table] * 4)
