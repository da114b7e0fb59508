"""Python's functions in the real trace processor: a track a thread, callers around those that they call."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from hwprof.analysis.python_lines import lines_of
from hwprof.analysis.python_stacks import looks_of, python_stacks
from hwprof.analysis.sampled_stacks import SampledStacks
from hwprof.run.directory import RunDirectory
from tests.support import looks, synthetic_run, synthetic_samples
from tests.support.synthetic_samples import KERNELS
from tests.support.traced import Traced

MAIN, HELPER = 4200, 4999
STACKS = """with recursive chain(id, ts, tid, callsite, frames) as (
              select s.id, s.ts, t.tid, s.callsite_id, '' from cpu_profile_stack_sample s join thread t using (utid)
              union all
              select chain.id, chain.ts, chain.tid, c.parent_id, f.name || ' > ' || chain.frames from chain
              join stack_profile_callsite c on chain.callsite = c.id join stack_profile_frame f on c.frame_id = f.id)
            select ts, tid, frames from chain where callsite is null order by ts, tid"""


def test_functions_are_slices_of_their_threads(tmp_path: Path) -> None:
    run = synthetic_run.build(tmp_path)
    since = run.read("spans").filter(path="iteration 1", **{"pass": "trace"})["begin_ns"].item()
    rows = [
        (MAIN, 0, "main", "/src/app.py", 3, 0, 900),
        (MAIN, 1, "Net.forward", "/src/net.py", 10, 100, 400),
        (MAIN, 1, "Net.forward", "/src/net.py", 12, 400, 800),
        (MAIN, 2, "decode", "/src/net.py", 40, 400, 600),
        (HELPER, 0, "Thread.run", "/lib/threading.py", 5, 300, 700),
    ]
    looks.add(run, rows, since)
    traced = Traced(run, tmp_path / "trace.pftrace")
    assert traced.processor.complaints() == []
    args = traced.args()
    found = [
        (row["track"], row["name"], row["parent"], args[row["arg_set_id"]]["place"],
         (row["ts"] - traced.to_boottime - since) // 1000 + 5, row["dur"] // 1000)
        for row in traced.slices() if row["category"] == "python"
    ]  # fmt: skip
    mine, other = "Python functions (trace)", f"Python functions of thread {HELPER} (trace)"
    assert sorted(found) == sorted([
        (mine, "main", None, "/src/app.py:3", 0, 900),
        (mine, "Net.forward", "main", "/src/net.py:10", 100, 700),
        (mine, "decode", "Net.forward", "/src/net.py:40", 400, 200),
        (other, "Thread.run", None, "/lib/threading.py:5", 300, 400),
    ])  # fmt: skip
    assert traced.summary.python_functions == 4
    assert f"{traced.summary.slices + 4:,} slices" in traced.summary.contents()


def test_each_sample_stands_on_the_python_line_that_led_to_it(tmp_path: Path) -> None:
    run = synthetic_run.build(tmp_path)
    synthetic_samples.add(run)
    window = run.read("spans").filter(path="iteration 1", **{"pass": "trace"}).row(0, named=True)
    since_ns, length_us = window["begin_ns"], (window["end_ns"] - window["begin_ns"]) // 1000
    half_us = length_us // 2
    rows = [
        (MAIN, 0, "measure", "/lib/hwprof/worker.py", 7, 0, length_us),
        (MAIN, 1, "main", "/src/app.py", 3, 0, length_us),
        (MAIN, 2, "_call_impl", "/lib/torch/module.py", 90, 0, length_us),
        (MAIN, 3, "Net.forward", "/src/net.py", 10, 0, half_us),
        (MAIN, 4, "conv2d", "/lib/torch/conv.py", 20, 0, half_us),
        (MAIN, 3, "Net.forward", "/src/net.py", 12, half_us, length_us),
        (MAIN, 4, "hook", "/lib/hwprof/hooks.py", 30, half_us, length_us),
    ]
    looks.add(run, rows, since_ns)
    traced = Traced(run, tmp_path / "trace.pftrace")
    assert traced.processor.complaints() == []
    found = {
        (row["tid"], row["ts"] // 1000): row["frames"].removesuffix(" > ").split(" > ")
        for row in traced.processor.query(STACKS)
    }
    samples = run.read("samples")
    below = {10: ["Net.forward (net.py:10)", "conv2d (conv.py:20)"], 12: ["Net.forward (net.py:12)"]}
    expected = {}
    for (time_ns, tid, kernel), line in zip(
        samples.select("time_ns", "tid", "kernel").iter_rows(), _lines(run, samples), strict=True
    ):
        name = KERNELS[kernel][2] or KERNELS[kernel][1]
        python = ["[line not known]"] if line is None else ["main (app.py:3)", *below[line]]
        expected[tid, (time_ns + traced.to_boottime) // 1000] = (python, name)
    assert {key: (_python(frames), frames[-1]) for key, frames in found.items()} == expected
    assert {len(python) for python, _ in expected.values()} == {1, 2, 3}
    perf = traced.processor.query("select count(*) as n from perf_sample")
    assert perf[0]["n"] == run.read("samples").height, "no sample is there twice"


def _python(frames: list[str]) -> list[str]:
    """Those with a line, or without one."""
    return [frame for frame in frames if (frame.endswith(")") and ".py:" in frame) or frame == "[line not known]"]


def _lines(run: RunDirectory, samples: pl.DataFrame) -> list[int | None]:
    """Of each sample the line of ``Net.forward``."""
    record = run.manifest.passes[1]
    known = looks_of(record)
    python = python_stacks(run.of_pass("python_frames", record.name), known)
    spans, switches = (run.of_pass(name, record.name) for name in ("spans", "switches"))
    found = SampledStacks(python, known, record, spans, run.read("layers"), switches).at(samples)
    lines = lines_of(python.stacks)
    return [None if stack is None else lines["line"][stack] for stack in found]
