"""Commands that measure nothing, with odd arguments, in odd surroundings: streams, limits, environment."""

from __future__ import annotations

import shutil
from pathlib import Path
from random import Random
from typing import Final

from scripts.faults.case import Case
from scripts.faults.kinds.odd_values import NUMBERS, TEXTS
from tests.support import synthetic_variants as variants

IMPORTS: Final = "hwprof.cli.app,hwprof.cli.report,hwprof.analysis.run_analysis,hwprof.report.json.kept,numpy"

COMMANDS: Final = (
    ("report",), ("report", "--all"), ("report", "--format", "json"), ("report", "--findings"),
    ("report", "--roofline"), ("report", "--kernels"), ("report", "--layer", "model.0"),
    ("report", "--format", "json-schema"),
    ("explain", "cpi"), ("explain", "--list"), ("explain", "keep_memory", "DO"), ("events",), ("events", "cache"),
    ("doctor",), ("models",), ("--help",), ("report", "--help"), ("collect", "--help"), ("--version",),
)  # fmt: skip

OPTIONS: Final = (
    "--width", "--top", "--sort", "--metrics", "--layer", "--root", "--format", "--nothing", "--all", "-h",
)  # fmt: skip

ENVIRONMENT: Final[dict[str, tuple[str | None, ...]]] = {
    "HOME": (None, "", "/nonexistent", "/dev/null"), "COLUMNS": ("0", "-1", "99999999", "²", "x", ""),
    "LINES": ("0", "²"), "TERM": (None, "dumb", "xterm-256color", "\x1b"), "LANG": ("C", "xx_XX.UTF-9"),
    "LC_ALL": ("C", "POSIX"), "PYTHONIOENCODING": ("ascii", "latin-1", "utf-16"), "NO_COLOR": ("1",),
    "XDG_CACHE_HOME": (None, "", "/dev/null", "/proc"), "TMPDIR": ("/nonexistent", "/proc"),
    "HWPROF_DEBUG": ("",), "TZ": ("nowhere",), "PYTHONWARNINGS": ("error",),
}  # fmt: skip

DOCTOR_S: Final = 60.0
"""It asks two fresh interpreters side by side what they can import, and what these wait for nobody takes off."""

LIMITS: Final = {
    "RLIMIT_NOFILE": (3, 6, 12, 40), "RLIMIT_FSIZE": (0, 1, 4096), "RLIMIT_NPROC": (0, 1),
    "RLIMIT_STACK": (1 << 16, 1 << 20),
}  # fmt: skip

FROM_OUTSIDE: Final = 0.35


def shared(root: Path) -> Path:
    """A run that is whole."""
    from hwprof.report.json.kept import document_of

    run = variants.sampled(root)
    document_of(run)
    return run.path


def case(random: Random, folder: Path, template: Path) -> Case:
    """One command, mostly with something odd about it."""
    run = folder / "results" / template.name
    shutil.copytree(template, run)
    if random.random() < 0.3:
        (run / "document.json").unlink()
    arguments = list(random.choice(COMMANDS))
    for _ in range(random.choice((0, 0, 1, 2))):
        arguments.append(random.choice(OPTIONS))
        if random.random() < 0.8:
            arguments.append(_text(random))
    if random.random() < FROM_OUTSIDE:
        arguments.append(_text(random))
    environment = {name: random.choice(ENVIRONMENT[name]) for name in ENVIRONMENT if random.random() < 0.15}
    limits = {name: random.choice(values) for name, values in LIMITS.items() if random.random() < 0.12}
    streams = {number: random.choice(("closed", "full", "nobody")) for number in (0, 1, 2) if random.random() < 0.1}
    odd = {name: value for name, value in (("with", environment), ("limits", limits), ("streams", streams)) if value}
    return Case(
        f"hwprof {' '.join(arguments)} {odd}",
        tuple(arguments),
        environment=environment,
        limits=limits,
        streams=streams,
        told=2 not in streams and "RLIMIT_FSIZE" not in limits,
        limit_s=DOCTOR_S if "doctor" in arguments else Case.limit_s,
        unchanged=[file for file in sorted(run.rglob("*")) if file.is_file() and file.name != "document.json"],
    )


def _text(random: Random) -> str:
    """Without the character that no argument can have, and of a length that the kernel passes on."""
    return str(random.choice((*TEXTS, *NUMBERS))).replace("\0", "")[:10_000]
