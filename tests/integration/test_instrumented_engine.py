"""Following the code of a real process: exact on known loops, invisible in results, the same every time."""

from __future__ import annotations

import platform
import re
from pathlib import Path

import pytest

from collectors.instrumented.engine import processor_flags
from collectors.shared.time_stamp_counter import reference_ghz
from tests.support.instrumented_process import child

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="code is instrumented on x86-64")


@pytest.mark.parametrize("threads", [1, 2])
def test_known_loops_are_exact_and_registers_survive_on_every_thread(threads: int) -> None:
    said = child(
        """
        engine = Engine()
        engine.instrument()
        test = self_test(engine)
        engine.uninstrument()
        contexts = engine.memory.contexts()
        end(loops=test.loops, threads=test.threads, registers=test.registers,
            mended=[context.mended for context in contexts],
            in_arena=[context.key in engine.memory.arena for context in contexts])
        """,
        threads,
    )
    assert {"integers", "live flags", "SSE and calls"} <= set(said["loops"])
    assert said["threads"] == threads
    assert said["in_arena"] == [True] * threads
    if "avx512f" in processor_flags():
        assert "AVX-512" in said["loops"]
        assert said["registers"] == 32
        assert all(said["mended"])


def test_frida_leaves_nothing_behind(tmp_path: Path) -> None:
    """Neither its helper's program, nor that as a process: it would stay for good, and be 10 MB more with each run. Nor
    what it notes of itself among its user's settings."""
    said = child(
        f"""
        from collectors.instrumented.frida_helper import _programs
        os.environ["TMPDIR"] = os.environ["XDG_CONFIG_HOME"] = {str(tmp_path)!r}
        engine = Engine()
        engine.instrument()
        threads = self_test(engine).threads
        engine.uninstrument()
        place = Path(os.environ["TMPDIR"])
        left = [str(program) for _, program in _programs() if program.is_relative_to(place)]
        end(threads=threads, left=left + os.listdir(place), place=str(place))
        """
    )
    assert (said["left"], said["place"]) == ([], str(tmp_path))
    assert said["threads"] == 2


def test_the_self_test_notices_corrupted_registers() -> None:
    if not {"avx512f", "avx512bw"} <= processor_flags():
        pytest.skip("the processor has no registers that frida would corrupt")
    said = child(
        """
        from collectors.instrumented import selftest
        engine = Engine(mend_epilog=False)
        addresses = (engine._instrument_address, engine._uninstrument_address)
        instrument, uninstrument = (ctypes.PYFUNCTYPE(None)(at) for at in addresses)
        instrument()  # this thread alone, and not for long: anything may go wrong with corrupted registers
        try:
            selftest._try_registers(selftest.ZMM)
        except HwprofError as error:
            uninstrument()
            end(error=error.message)
        """,
        threads=1,
    )
    assert "zmm0 was corrupted" in said["error"]


def test_the_self_test_notices_wrong_counts() -> None:
    said = child(
        """
        from collectors.instrumented import selftest
        from collectors.instrumented.machine_code import loops
        import msgspec
        wrong = msgspec.structs.replace(loops()[0], each={"instructions": 4, "conditional_branches": 1})
        selftest.loops = lambda: (wrong,)
        engine = Engine()
        engine.instrument()
        try:
            self_test(engine)
        except HwprofError as error:
            engine.uninstrument()
            end(error=error.message)
        """
    )
    assert "the loop integers has 4014 instructions, counted were 3011" in said["error"]


def test_a_pass_with_wrong_counts_has_none() -> None:
    """The loops are tried at its start, and checked when it is over."""
    said = child(
        """
        from collectors.instrumented import machine_code, selftest
        from collectors.instrumented.collector import InstrumentedCollector
        from hwprof.collector.contract import PassContext
        from pathlib import Path
        import msgspec
        wrong = msgspec.structs.replace(machine_code.loops()[0], each={"instructions": 4, "conditional_branches": 1})
        selftest.loops = lambda: (wrong,)
        collector = InstrumentedCollector()
        collector.start(PassContext("instrumented", os.getpid(), os.getpid(), Path.cwd(), {}))
        try:
            collector.stop()
        except HwprofError as error:
            end(error=error.message, remedy=error.remedy)
        """
    )
    assert "the loop integers has 4014 instructions, counted were 3011" in said["error"]
    assert said["remedy"] == "leave it out with --no-instrumented"


def test_following_begins_again_and_survives_what_a_process_does() -> None:
    """New threads, exceptions, child processes, forks, an exit hook, and following anew."""
    said = child(
        """
        import subprocess
        a = torch.rand(200, 200)
        expected = a @ a
        engine = Engine()
        engine.instrument()
        ran = subprocess.run(["echo", "hello"], capture_output=True).stdout.decode().strip()
        child = os.fork()
        if child == 0:
            os._exit(7)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        instrumented_after_fork = engine.instrumenting
        found = []
        thread = threading.Thread(target=lambda: found.append(bool((a @ a == expected).all())))
        thread.start()
        thread.join()
        try:
            torch.zeros(2, 3) @ torch.zeros(2, 3)
        except RuntimeError:
            found.append(True)
        for _ in range(3):
            engine.uninstrument()
            engine.instrument()
            found.append(bool((a @ a == expected).all()))
        threads = self_test(engine).threads
        engine.uninstrument()
        end(ran=ran, status=status, found=found, threads=threads, instrumented_after_fork=instrumented_after_fork)
        """
    )
    assert said == {"ran": "hello", "status": 7, "found": [True] * 5, "threads": 2, "instrumented_after_fork": True}


CONVOLUTIONS = """
    from hwprof.collector.contract import CountedSpan, PassContext
    from hwprof.run.process_events import COVERAGE_EVENTS
    from collectors.instrumented.collector import InstrumentedCollector
    from torch import nn
    import tempfile
    model = nn.Sequential(nn.Conv2d(16, 64, 3), nn.ReLU(), nn.Conv2d(64, 64, 3, bias=False), nn.MaxPool2d(2)).eval()
    x = torch.rand(1, 16, 66, 66)
    ROUNDS = 3
    with torch.inference_mode():
        for _ in range(2):
            expected = model(x)
        collector = InstrumentedCollector()
        raw = Path(tempfile.mkdtemp())
        collector.start(PassContext("instrumented", os.getpid(), os.getpid(), raw, {}))
        edge = collector.full_reader()
        same, edges = [], 0
        for _ in range(ROUNDS):
            value = x
            for layer in model:
                edge()
                value = layer(value)
                edge()
            same.append(bool((value == expected).all()))
        collected = collector.stop()
    spans = [CountedSpan(n, n // 4, 2 * n, 2 * n + 1) for n in range(4 * ROUNDS)]
    counts = collector.counts(spans)
    counts = counts.filter(~counts["event"].is_in(COVERAGE_EVENTS))
    tables = collector.kernel_tables(spans)
    value = lambda event, span: int(counts.filter(event=f"instrumented.{event}", span=span)["value"].sum())
    by_kernel = tables["kernel_counts"].join(tables["kernels"], on="kernel")
    largest = by_kernel.filter(event="instrumented.flops-fp32", span=2).sort("value").tail(1)
    end(
        same=same,
        flops=[[value("flops-fp32", 4 * n + layer) for layer in range(4)] for n in range(ROUNDS)],
        kernels=[[value("instructions-jit", 4 * n + layer) + value("instructions-torch", 4 * n + layer)
                  for layer in range(4)] for n in range(ROUNDS)],
        whole=[value("instructions", span) for span in range(4)],
        parts=[sum(value(f"instructions-{part}", span) for part in ("jit", "torch", "python", "system", "other"))
               for span in range(4)],
        widths=sum(value(f"flops-fp32-{width}", 2) for width in ("scalar", 128, 256, 512)),
        tids=counts["tid"].n_unique(),
        provenance=counts["provenance"].unique().to_list(),
        windows=[int(counts["running_ns"].min()), int((counts["enabled_ns"] - counts["running_ns"]).sum())],
        by_kernel=int(by_kernel.filter(event="instrumented.flops-fp32", span=2)["value"].sum()),
        largest=largest["name"].item() or largest["library"].item(),
        perf_map=(raw / "perf.map").exists(),
        left_behind=Path(f"/tmp/perf-{os.getpid()}.map").exists(),
        notes=[str(note) for note in collected.notes],
        roles=sorted(collected.tables["threads"]["role"].to_list()),
    )
"""


@pytest.mark.parametrize("threads", [1, 2])
def test_layers_of_convolutions(threads: int) -> None:
    said = child(CONVOLUTIONS, threads)
    assert said["same"] == [True] * 3, "outputs are bit-identical"
    assert said["flops"][1] == said["flops"][2], "FLOPs are the same every time"
    for second, third in zip(said["kernels"][1], said["kernels"][2], strict=True):
        assert third == pytest.approx(second, rel=1e-3)
    without_padding = 2 * 64 * 64 * 9 * 62 * 62
    assert said["flops"][2][2] == pytest.approx(without_padding, rel=0.02)
    assert said["widths"] == said["flops"][0][2]
    assert said["by_kernel"] == said["flops"][0][2], "kernels add up to their layer"
    assert said["whole"] == said["parts"], "domains add up to the whole"
    assert said["tids"] == threads
    assert said["roles"] == ["main", "worker"][:threads]
    assert said["provenance"] == ["instrumented"]
    assert said["windows"][0] > 0
    assert said["windows"][1] == 0
    assert said["perf_map"]
    assert not said["left_behind"]


@pytest.mark.parametrize("kib", [1, 16, 256, 1024, 8192])
def test_copies_and_fills_have_their_bytes(kib: int) -> None:
    """The C library's, which takes vectors or a rep prefix by their size and the processor."""
    said = child(
        f"""
        from collectors.instrumented.facts import Fact
        from collectors.instrumented.log import Log
        size = {kib} << 10
        here, there = ctypes.create_string_buffer(size), ctypes.create_string_buffer(size)
        engine = Engine()
        engine.instrument()
        engine.edge()
        ctypes.memmove(there, here, size)
        engine.edge()
        ctypes.memset(here, 1, size)
        engine.edge()
        engine.uninstrument()
        log = Log.of(engine.memory)
        last = int(engine.memory.control.edges) - 1
        facts = [log.facts_within(last - back, 0, 0, 1 << 47) for back in (1, 0)]
        end(bytes=[[one[Fact.LOAD_BYTES], one[Fact.STORE_BYTES]] for one in facts])
        """,
        threads=1,
    )
    (copy_loads, copy_stores), (fill_loads, fill_stores) = said["bytes"]
    moved, python = kib << 10, 1 << 16
    assert 0 <= copy_loads - moved < python and 0 <= copy_stores - moved < python
    assert fill_loads < python and 0 <= fill_stores - moved < python


def test_threads_that_are_not_followed_are_named() -> None:
    said = child(
        """
        from hwprof.collector.contract import PassContext
        from collectors.instrumented.collector import InstrumentedCollector
        import tempfile, time
        collector = InstrumentedCollector()
        collector.start(PassContext("instrumented", os.getpid(), os.getpid(), Path(tempfile.mkdtemp()), {}))
        halt = threading.Event()
        def work():
            while not halt.is_set():
                sum(range(1000))
        threads = [threading.Thread(target=work)]
        threads[0].start()
        tid = threads[0].native_id
        time.sleep(0.5)
        collected = collector.stop()
        halt.set()
        end(notes=[str(note) for note in collected.notes], tid=tid)
        """
    )
    assert any("uninstrumented" in note and f"({said['tid']})" in note for note in said["notes"])


def test_cpu_time_of_uncounted_threads_is_told_span_by_span() -> None:
    """What a thread that is born, works and ends within a span says of its own CPU time."""
    said = child(
        """
        from hwprof.collector.contract import CountedSpan, PassContext
        from hwprof.run.process_events import COVERAGE_EVENTS
        from collectors.instrumented.collector import InstrumentedCollector
        import tempfile, time
        collector = InstrumentedCollector()
        collector.start(PassContext("instrumented", os.getpid(), os.getpid(), Path(tempfile.mkdtemp()), {}))
        edge, took = collector.full_reader(), []
        def work(seconds):
            while time.thread_time() < seconds:
                sum(range(1000))
            took.append(time.thread_time_ns())
        edge()
        for seconds in (0.001, 0.1, None):
            if seconds is not None:
                thread = threading.Thread(target=work, args=(seconds,))
                thread.start()
                thread.join()
            else:
                sum(range(1_000_000))
            edge()
        collector.stop()
        spans = [CountedSpan(number, 0, number, number + 1) for number in range(3)] + [CountedSpan(3, 0, 0, 3)]
        rows = collector.counts(spans)
        told = {event: rows.filter(rows["event"] == event)["value"].to_list() for event in COVERAGE_EVENTS}
        end(took=took, uncounted=told["uncounted-cpu-time"], counted=told["counted-cpu-time"])
        """
    )
    brief, long, none, whole = said["uncounted"]
    ending_ns, clocks_ns = 1_000_000, 200_000  # a thread goes on after its last look at the clock; all are read in turn
    assert -clocks_ns <= brief - said["took"][0] <= ending_ns
    assert -clocks_ns <= long - said["took"][1] <= ending_ns
    assert none < 100_000
    assert whole == pytest.approx(brief + long + none, abs=10_000)
    assert said["counted"][2] > 1_000_000


def test_the_reference_frequency_is_that_of_the_time_stamp_counter() -> None:
    """The kernel's own calibration of it, where it tells (cpuinfo has it on processors without frequency scaling), and
    itself again."""
    first, second = reference_ghz(), reference_ghz()
    assert second == pytest.approx(first, rel=1e-4)
    assert 0.5 < first < 10
    told = re.search(r"^cpu MHz\s*: ([\d.]+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    scaled = Path("/sys/devices/system/cpu/cpu0/cpufreq").exists() or "aperfmperf" in processor_flags()
    if told is not None and not scaled:
        assert first == pytest.approx(float(told[1]) / 1000, rel=1e-3)


UNKNOWN_TO_THE_DISASSEMBLER = {"avx512_bf16": "62f2764852c2", "avx_vnni": "c4e27550c2"}
"""A dot product of vector registers, by the flag of processors that have it."""

MANY_COPIES = """
    import mmap
    zero, unknown, back = bytes.fromhex("c5fdefc0"), bytes.fromhex("{unknown}"), b"\\xc3"
    functions = [{function}] * {times}
    memory = mmap.mmap(-1, sum(map(len, functions)), prot=7)
    memory.write(b"".join(functions))
    begin = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    engine = Engine()
    engine.instrument()
    engine.edge()
    at = begin
    for function in functions:
        ctypes.CFUNCTYPE(None)(at)()
        at += len(function)
    engine.edge()
    engine.uninstrument()
    from collectors.instrumented.facts import Fact
    from collectors.instrumented.log import Log
    facts = Log.of(engine.memory).facts_within(engine.memory.control.edges - 1, 0, begin, begin + len(memory))
    end(counted=facts[Fact.INSTRUCTIONS], undecoded=engine.memory.control.undecoded)
"""


def many_copies(function: str, times: int) -> dict[str, int]:
    known = [code for flag, code in UNKNOWN_TO_THE_DISASSEMBLER.items() if flag in processor_flags()]
    if not known:
        pytest.skip("the processor has no instruction that frida's disassembler does not know")
    return child(MANY_COPIES.format(unknown=known[0], function=function, times=times), threads=1)


RESERVED = """
    import mmap
    code = bytes.fromhex("c5fdefc0 0f0d3c24 c3")  # vpxor; a prefetch of a kind that is reserved
    memory = mmap.mmap(-1, len(code), prot=7)
    memory.write(code)
    begin = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    engine = Engine()
    engine.instrument()
    engine.edge()
    ctypes.CFUNCTYPE(None)(begin)()
    engine.edge()
    engine.uninstrument()
    from collectors.instrumented.notes import check_complete
    from hwprof.errors import HwprofError
    try:
        check_complete(engine)
        said = "complete"
    except HwprofError as error:
        said = error.message
    end(said=said, begin=begin)
"""


def test_an_instruction_that_cannot_be_instrumented_is_shown() -> None:
    said = child(RESERVED, threads=1)
    assert f"(c5 fd ef c0 | 0f 0d 3c 24 c3 00 00 00 00 00 00 00 00 00 00 00 at {said['begin'] + 4:#x})" in said["said"]


def test_where_room_for_copies_runs_out_no_instruction_is_executed_twice() -> None:
    """frida goes on behind the last instruction that its disassembler knows."""
    assert many_copies("zero + unknown * 40 + back", 20000) == {"counted": 20000 * 42, "undecoded": 0}


def test_more_unknown_instructions_than_a_block_has_room_for_are_left_alone_and_said() -> None:
    """frida does not ask for room before it has decoded an instruction."""
    assert many_copies("unknown * 5000 + back", 10)["undecoded"] == 1


def test_a_log_that_goes_on_in_a_file_is_the_same(tmp_path: Path) -> None:
    """Once emptied after each edge, once kept as it is: the same loops, the same counts."""
    said = child(
        f"""
        from pathlib import Path
        from collectors.instrumented.facts import Fact
        from collectors.instrumented.log import Log, LogFile
        engine = Engine()
        engine.instrument()
        files = LogFile(engine.memory, Path({str(tmp_path)!r}), enough=1), LogFile(engine.memory)
        found = []
        for file in files:
            first = engine.memory.control.edges
            for _ in range(3):
                engine.edge()
                torch.rand(64, 64) @ torch.rand(64, 64)
                engine.edge()
                file.empty_if_long()
            found.append((first, engine.memory.control.edges, engine.memory.control.log_used))
        engine.uninstrument()
        log = Log.of(engine.memory, files[0])
        fp32 = slice(Fact.FLOPS_FP32_SCALAR, Fact.FLOPS_FP32_512 + 1)
        flops = [
            [sum(log.facts_within(edge, 0, 0, 1 << 47)[fp32]) for edge in range(first + 1, last, 2)]
            for first, last, _ in found
        ]
        end(flops=flops, used=[used for _, _, used in found], ends=int(log.ends[-1]), entries=len(log.entries))
        """,
        threads=1,
    )
    assert said["used"][0] == 0 and said["used"][1] > 0
    assert said["ends"] == said["entries"]
    assert said["flops"][0] == said["flops"][1] and min(said["flops"][0]) >= 2 * 64**3
