"""Forwards with their code instrumented and not, in turn, in a process of its own; what it found is its last line,
JSON."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

QUIET: Final = 0.05
"""Processors' time, as a share of the round's, that others may take in a round that is kept: threads that wait for one
that is kept waiting spin, and nothing is to be learnt from how long."""

PATIENCE_S: Final = 120.0
"""So long the rounds of one process wait for quiet, together."""

LEAST: Final = 2
"""Rounds that are done in any case: outputs are compared in a noisy one, too."""

COMMAND: Final = (sys.executable, "-m", "scripts.benchmarks.instrumented_forwards")


class Forwards(msgspec.Struct):
    """Seconds, round by round, of CPU time where there is one thread; ``first_s``: with the code being copied."""

    plain_s: list[float]
    instrumented_s: list[float]
    first_s: list[float]
    identical: int  # instrumented forwards whose outputs are the plain ones', bit by bit
    tried: int
    self_test: str
    disturbed: int = 0  # rounds in which others worked, not in the times


def measure_in_a_process(model: str, imgsz: int, threads: int, rounds: int) -> Forwards:
    """In a fresh process. Raises ``RuntimeError`` where it dies."""
    command = [*COMMAND, model, str(imgsz), str(threads), str(rounds)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}: {done.stderr[-1000:]}")
    return msgspec.json.decode(done.stdout.splitlines()[-1], type=Forwards)


def measure(model: str, imgsz: int, threads: int, rounds: int) -> Forwards:
    """Every round does the forward twice instrumented, for the first copies the code, and twice uninstrumented."""
    import torch

    from collectors.instrumented.engine import Engine
    from collectors.instrumented.selftest import self_test
    from hwprof.workload import factory
    from hwprof.workload.spec import WorkloadSpec
    from hwprof.workload.tensors import tensors_in

    torch.set_num_threads(threads)
    workload = factory.build(WorkloadSpec(model=model, imgsz=imgsz))
    workload.prepare()
    call = workload.forwards()[0]

    clock = time.thread_time if threads == 1 else time.monotonic  # one that works alone need not wait for quiet

    def forward() -> tuple[float, list[torch.Tensor]]:
        begin = clock()
        with torch.inference_mode():
            output = call.run()
        return clock() - begin, list(tensors_in(output))

    forward()
    _, expected = forward()
    engine = Engine()
    engine.instrument()
    tested = self_test(engine)
    engine.uninstrument()
    found = Forwards([], [], [], 0, 0, f"{', '.join(tested.loops)}; {tested.registers} registers")
    deadline_s = time.monotonic() + (PATIENCE_S if rounds > 1 else 0)  # one round is no measurement
    while len(found.plain_s) < rounds and (found.tried < 2 * LEAST or time.monotonic() < deadline_s):
        while threads > 1 and _others_share(0.3) > QUIET and time.monotonic() < deadline_s:
            time.sleep(0.7)
        busy_s, own_s, begin_s = _busy_s(), time.process_time(), time.monotonic()
        engine.instrument()
        instrumented = [forward() for _ in range(2)]
        engine.uninstrument()
        plain = [forward() for _ in range(2)]
        others_s = _busy_s() - busy_s - (time.process_time() - own_s)
        found.tried += 2
        found.identical += sum(_identical(outputs, expected) for _, outputs in instrumented)
        if threads > 1 and others_s > QUIET * (time.monotonic() - begin_s):
            found.disturbed += 1
            continue
        found.first_s.append(instrumented[0][0])
        found.instrumented_s.append(instrumented[1][0])
        found.plain_s.append(plain[1][0])
    if any(context.lost_blocks for context in engine.memory.contexts()) or engine.memory.control.undecoded:
        raise RuntimeError("not everything was counted: fewer rounds")
    return found


def _others_share(window_s: float) -> float:
    """Processors that others use, while this process sleeps for so long."""
    busy_s, own_s, begin_s = _busy_s(), time.process_time(), time.monotonic()
    time.sleep(window_s)
    return (_busy_s() - busy_s - (time.process_time() - own_s)) / (time.monotonic() - begin_s)


def _busy_s() -> float:
    """What all processes have used of the processors since the machine's start, in seconds."""
    fields = [int(field) for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    idle = fields[3] + fields[4]
    return (sum(fields) - idle) / os.sysconf("SC_CLK_TCK")


def _identical(one: Sequence[Any], other: Sequence[Any]) -> bool:
    import torch

    def bits(tensor: torch.Tensor) -> torch.Tensor:
        return tensor.contiguous().view(torch.uint8)

    return len(one) == len(other) and all(torch.equal(bits(a), bits(b)) for a, b in zip(one, other, strict=True))


def main() -> None:
    model, *numbers = sys.argv[1:]
    found = measure(model, *map(int, numbers))
    print(json.dumps(msgspec.to_builtins(found)), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
