"""Measuring a small model that misbehaves, is ended at some moment, or has not what it needs: time, room, memory; or
only asking for its layers."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Final

from scripts.faults.case import USUAL, Case
from scripts.faults.disks import may_mount

IMPORTS: Final = ""
"""In fresh processes."""

SIGNALS: Final = {"SIGINT": 130, "SIGTERM": 143, "SIGHUP": 129, "SIGKILL": 137}
LONGEST_S: Final = 30.0
"""About as long as such a run takes on a busy machine."""

LAYERS_SHARE: Final = 0.1
LONGEST_LAYERS_S: Final = 6.0
"""As ``LONGEST_S``, of ``hwprof layers``."""

LIMIT_S: Final = 240.0
LIMIT_BYTES: Final = 2 << 30
"""The bare model, with torch, has a quarter of it."""

OPTIONS: Final = (
    ("--passes", "measure"), ("--passes", "measure,trace"), ("--passes", "trace"), ("--no-pyspy",),
    ("--no-instrumented",),
    ("--threads", "1"), ("--format", "json"), ("--try", "5"), ("--collectors", "memory,torch_profiler"), ("--top", "1"),
    ("--counters", "perf"), ("--wait-quiet", "0.5"),
)  # fmt: skip

LIMITS: Final = {
    "RLIMIT_NOFILE": (8, 20, 40, 80, 200), "RLIMIT_FSIZE": (0, 4096, 1 << 16, 1 << 20),
    "RLIMIT_CPU": (1, 3, 6, 10), "RLIMIT_AS": (1 << 28, 1 << 30, 3 << 30), "RLIMIT_NPROC": (1, 8),
}  # fmt: skip

DISKS: Final = (1 << 12, 1 << 16, 150_000, 200_000, 1 << 18, 1 << 20, 3 << 20)
"""Bytes: such a run has about four megabytes."""

SLOW: Final = (0.001, 0.01, 0.05)
"""Seconds for each access to a file."""

FACTORY: Final = """
import os, signal, sys, threading, time
import torch

calls = 0

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 64))

    def forward(self, x):
        global calls
        calls += 1
        {fault}
        return self.layers(x)

def make():
    {at_start}
    return Model(), torch.rand(8, 64)
"""

FAULTS: Final = (
    "pass", "pass", "pass", "pass",
    "if calls > 3: raise ValueError('a\\x1b[31m\\nhwprof: forged')",
    "if calls > 4: os._exit(7)",
    "if calls > 5: os.kill(os.getpid(), signal.SIGSEGV)",
    "if calls > 2: sys.exit(0)",
    "if calls == 3: os.fork() or time.sleep(60)",
    "if calls == 2: threading.Thread(target=time.sleep, args=(60,)).start()",
    "if calls == 2: threading.Thread(target=time.sleep, args=(60,), daemon=True).start()",
    "if calls == 3: os.system('sleep 60 &')",
    "if calls == 3: os.close(3)",
    "if calls == 3: os.closerange(0, 3)",
    "if calls == 3: os.chdir('/')",
    "if calls == 3: os.environ.clear()",
    "if calls == 3: signal.signal(signal.SIGINT, signal.SIG_IGN); signal.signal(signal.SIGTERM, signal.SIG_IGN)",
    "if calls == 4: raise KeyboardInterrupt",
    "if calls == 4: raise SystemExit('bye')",
    "print('\\x1b[2J' * 3, calls)",
    "sys.stdout = sys.stderr = None",
    "if calls == 3: torch.set_num_threads(1)",
    "if calls == 3: sys.setrecursionlimit(60)",
    "if calls == 3: time.sleep(3)",
    "x = x[: 1 + calls % 3]",
)  # fmt: skip

AT_START: Final = (
    *["pass"] * 12, "raise RuntimeError('no')", "os._exit(3)", "sys.exit('no')", "return None",
    "return torch.nn.ReLU()", "return 1 / 0", "print('x' * 100_000)",
)  # fmt: skip


def shared(root: Path) -> None:
    """Nothing: the peaks are measured by none of them."""


def case(random: Random, folder: Path, _: None) -> Case:
    """One run; what is kept of it is read afterwards."""
    fault, at_start = random.choice(FAULTS), random.choice(AT_START)
    (folder / "odd.py").write_text(FACTORY.format(fault=fault, at_start=at_start))
    options = [text for _ in range(random.randrange(4)) for text in random.choice(OPTIONS)]
    iterations = str(random.choice((1, 2, 8)))
    arguments: tuple[str, ...] = ("collect", "--model", "odd:make", "--iterations", iterations, "--no-peaks", *options)
    longest_s = LONGEST_S
    if random.random() < LAYERS_SHARE:
        arguments, longest_s = ("layers", "--model", "odd:make"), LONGEST_LAYERS_S
    signals: list[tuple[str, float]] = []
    if random.random() < 0.5:
        name, at_s = random.choice(list(SIGNALS)), random.uniform(0, longest_s)
        signals = [(name, at_s)]
        if random.random() < 0.3:
            signals.append((random.choice(list(SIGNALS)), at_s + random.choice((0.0, 0.1, 1.0))))
    limits = {}
    if random.random() < 0.3:
        name = random.choice(list(LIMITS))
        limits = {name: random.choice(LIMITS[name])}
    disk_bytes = random.choice(DISKS) if may_mount() and random.random() < 0.2 else None
    slow_s = random.choice(SLOW) if random.random() < 0.1 else 0.0
    codes = {SIGNALS[name] for name, _ in signals}
    if "RLIMIT_CPU" in limits:
        codes.add(137)
    return Case(
        f"{fault}; {at_start}; {' '.join(arguments)} {signals} {limits} {disk_bytes} {slow_s}",
        arguments,
        codes=USUAL | codes | ({130} if "KeyboardInterrupt" in fault else set()),
        limit_s=LIMIT_S,
        limit_bytes=LIMIT_BYTES,
        limits=limits,
        signals=tuple(signals),
        disk_bytes=disk_bytes,
        slow_s=slow_s,
        told="RLIMIT_FSIZE" not in limits and 137 not in codes,
        then=("report", "--all"),
    )
