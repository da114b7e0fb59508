"""How long does it take until libtorch's functions have names? hwprof beside nm and perf.

    python -m scripts.benchmarks.symbols [--rounds 5] [--library PATH]

Every load is one of a fresh process, the file in the page cache. hwprof's first one has an empty cache folder. nm lists
the same file; perf reports a profile of a program that is inside the library most of the time.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from scripts.benchmarks.tables import Table, write

ADDRESSES: Final = 1_000_000
NAMES: Final = 10_000

LOAD: Final = """
import sys, time
from pathlib import Path
from collectors.shared.symbols.library import open_library
began = time.perf_counter()
symbols = open_library(Path(sys.argv[1])).symbols
symbols.ranges
print(time.perf_counter() - began, len(symbols))
"""
RESOLVE: Final = """
import sys, time
from pathlib import Path
import numpy as np
from collectors.shared.symbols.library import open_library
from collectors.shared.symbols.mappings import Mapping
from collectors.shared.symbols.resolver import Resolver
path, addresses, names = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
symbols = open_library(path).symbols
random = np.random.default_rng(0)
some = random.choice(symbols.starts, names, replace=False)
base = 0x7F0000000000
segment = open_library(path).segments[0]
mapping = Mapping(base + segment.offset, base + segment.offset + segment.length, segment.offset, str(path))
asked = random.choice(some, addresses) + np.uint64(base + segment.offset - segment.address)
began = time.perf_counter()
numbers, kernels = Resolver([mapping]).resolve(asked)
print(time.perf_counter() - began, sum(kernel.name is not None for kernel in kernels))
"""
PROFILED: Final = """
import torch
a = torch.randn(1, 16, 64, 64)
for _ in range(200):
    torch.nn.functional.silu(torch.nn.functional.conv2d(a, torch.randn(16, 16, 3, 3)))
"""


def python(program: str, cache: Path, *arguments: str) -> tuple[float, int]:
    """What a program measured of itself, in seconds, and what it found."""
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache)}
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], env=environment, check=True, capture_output=True, text=True
    )
    seconds, found = done.stdout.split()
    return float(seconds), int(found)


def process(*command: str) -> float:
    """How long it runs, in seconds."""
    began = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - began


def first_load(library: Path) -> tuple[float, int]:
    """With an empty cache, which it writes."""
    with tempfile.TemporaryDirectory() as cache:
        return python(LOAD, Path(cache), str(library))


def row(what: str, times_s: Sequence[float], amount: str) -> list[str]:
    """The median, and the spread."""
    spread = f"{min(times_s):.3f} to {max(times_s):.3f}"
    return [what, f"{statistics.median(times_s):.3f}", spread, amount]


def measure(library: Path, rounds: int, folder: Path) -> list[list[str]]:
    """The rows of the table."""
    cache = folder / "cache"
    found = python(LOAD, cache, str(library))[1]
    functions = f"{found:,} functions"
    asked = (str(library), str(ADDRESSES), str(NAMES))
    measured: dict[tuple[str, str], Callable[[], float]] = {
        ("hwprof, first time", functions): lambda: first_load(library)[0],
        ("hwprof, from the cache", functions): lambda: python(LOAD, cache, str(library))[0],
        (
            f"hwprof, {ADDRESSES:,} addresses to names",
            f"{NAMES:,} names, demangled and shortened",
        ): lambda: python(RESOLVE, cache, *asked)[0],
    }
    if nm := shutil.which("nm"):
        measured["nm", "every symbol"] = lambda: process(nm, str(library))
        measured["nm -C", "every symbol, demangled"] = lambda: process(nm, "-C", str(library))
    if perf := shutil.which("perf"):
        data = str(folder / "perf.data")
        subprocess.run(
            [perf, "record", "-e", "cpu-clock", "-o", data, sys.executable, "-c", PROFILED],
            check=True,
            capture_output=True,
        )
        report = (perf, "report", "--stdio", "-i", data, "--dsos", library.name)
        measured["perf report", "those of one profile"] = lambda: process(*report)
    times_s: dict[tuple[str, str], list[float]] = {key: [] for key in measured}
    for _ in range(rounds):
        for key, run in measured.items():
            times_s[key].append(run())
    return [row(what, times_s[what, amount], amount) for what, amount in measured]


def default_library() -> Path:
    """The installed libtorch_cpu.so."""
    found = find_spec("torch")
    if found is None or found.origin is None:
        raise SystemExit("torch is not installed: name a library with --library")
    return Path(found.origin).parent / "lib" / "libtorch_cpu.so"


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--library", type=Path, help="instead of PyTorch's libtorch_cpu.so")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--output", type=Path, default=Path("results/symbols.md"))
    arguments = parser.parse_args()
    library = arguments.library or default_library()
    with tempfile.TemporaryDirectory() as folder:
        rows = measure(library, arguments.rounds, Path(folder))
    note = f"""
{library.name}, {library.stat().st_size / 1e6:,.0f} MB: seconds, the median of {arguments.rounds} rounds in turns, and
the fastest and slowest. hwprof's are taken within a process that has its modules imported, the others' are whole
processes. The load on the machine was {os.getloadavg()[0]:.1f}.
"""
    write(Table("Names for libtorch", ["What", "s", "spread", "of"], rows, note), arguments.output)


if __name__ == "__main__":
    main()
