"""The machine's peaks, measured: by C, and by what is there without a compiler."""

from __future__ import annotations

import json
import mmap
import resource
import shutil
from pathlib import Path

import pytest

from hwprof.hardware import machine
from hwprof.hardware.peaks import team
from hwprof.hardware.peaks.kernels import Kernels
from hwprof.hardware.peaks.memory import LINE_BYTES, Memory, renewed
from hwprof.run.peaks import DRAM, USUAL_PAGES
from tests.support.command import hwprof
from tests.support.requirements import require_module


@pytest.fixture(scope="module")
def kernels() -> Kernels:
    if shutil.which("cc") is None and shutil.which("gcc") is None:
        pytest.skip("no C compiler")
    return Kernels.compiled(machine.cpuinfo().flags)[0]


def test_the_triad_is_a_triad(kernels: Kernels) -> None:
    memory, arrays = Memory.of_arrays(3 * 4096)
    words = memory.bytes.view("f8")
    places = [(address - memory.address) // 8 for address in arrays.addresses]
    words[places[1] : places[1] + arrays.elements] = 2.0
    kernels.triad(arrays)(1)
    assert (words[places[0] : places[0] + arrays.elements] == 2.0 + 3.0).all()
    if kernels.past_caches:
        words[places[0] : places[0] + arrays.elements] = 0.0
        kernels.triad(arrays, past_caches=True)(2)
        assert (words[places[0] : places[0] + arrays.elements] == 5.0).all()


@pytest.mark.parametrize("lines", [1, 2, 1000])
def test_a_chase_comes_by_each_line_once(lines: int) -> None:
    memory = Memory.of_a_chase(lines * LINE_BYTES, seed=1, huge_pages=True)
    words, seen, at = memory.bytes.view("u8"), set(), memory.address
    for _ in range(lines):
        seen.add(at)
        at = int(words[(at - memory.address) // 8])
    assert len(seen) == lines and at == memory.address


def test_new_memory_has_a_fault_a_page_each_time() -> None:
    loop, faults = renewed(4 << 20)
    assert 2 <= faults <= (4 << 20) // mmap.PAGESIZE + 16, "with huge pages, the lower end"
    before = resource.getrusage(resource.RUSAGE_THREAD).ru_minflt
    loop(5)
    assert resource.getrusage(resource.RUSAGE_THREAD).ru_minflt - before >= 5 * (faults - 16)


def test_a_thread_that_fails_ends_all(kernels: Kernels) -> None:
    def make(number: int) -> list[team.Loop]:
        if number == 0:
            raise MemoryError("no more")
        return [kernels.additions()]

    with pytest.raises(MemoryError, match="no more"):
        team.seconds_a_round([0, 0], make, 0.001, 2)


@pytest.mark.alone
def test_the_command_measures_keeps_and_shows(tmp_path: Path) -> None:
    require_module("torch")
    cache = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    done = hwprof("peaks", "--threads", "2", "--format", "json", cwd=tmp_path, environment=cache)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    peaks = {(one["what"], one["level"], one["threads"]): one["value"] for one in found["peaks"]}
    assert found["threads"] == [1, 2] and found["built_by"]
    levels = [one for one in ("L1", "L2", "L3", DRAM) if ("read", one, 1) in peaks]
    assert levels[0] == "L1" and levels[-1] == DRAM
    assert peaks["read", "L1", 1] > 1.5 * peaks["read", DRAM, 1], "caches are faster"
    assert peaks["latency", "L1", 1] < 5 < 20 < peaks["latency", DRAM, 1]
    assert 0.8 < peaks[USUAL_PAGES, DRAM, 1] / peaks["latency", DRAM, 1] < 5, "the same, where huge pages are usual"
    assert 0.3 < peaks["gemm-fp32", None, 1] / peaks["fp32", None, 1] < 1.1
    assert 0.5 < peaks["clock", None, 1] < 7
    assert 100 < peaks["new-page", None, 1] < 1e6, "with huge pages, the upper end"
    for sheet in found["theoretical"]:
        assert peaks[sheet["what"], None, sheet["threads"]] <= 1.1 * sheet["value"], sheet
    assert found["seconds"] < 30
    kept = list((tmp_path / "cache" / "hwprof").glob("peaks-*.json"))
    assert len(kept) == 1
    if found["others_share"] <= 0.05:
        again = hwprof("peaks", "--threads", "2", cwd=tmp_path, environment=cache, columns=80)
        assert again.returncode == 0 and found["created"] in again.stdout.replace("\n", " ")
    kept[0].write_bytes(b"{")
    anew = hwprof("peaks", "--threads", "2", cwd=tmp_path, environment=cache)
    assert anew.returncode == 0 and json.loads(kept[0].read_bytes())["threads"] == [1, 2], (
        "what is damaged is made anew"
    )


@pytest.mark.alone
def test_without_a_compiler_there_are_products_and_numpys_triad(tmp_path: Path) -> None:
    require_module("torch")
    given = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "CC": "no-such-compiler"}
    done = hwprof("peaks", "--threads", "1", "--format", "json", cwd=tmp_path, environment=given)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    kinds = {one["what"]: one["how"] for one in found["peaks"]}
    assert "new-page" in kinds and "gemm-fp32" in kinds and kinds["triad"].startswith("numpy") and "fp32" not in kinds
    reasons = {one["what"]: one for one in found["missing"]}
    assert "no-such-compiler" in reasons["fp32"]["reason"] and reasons["fp32"]["remedy"]
    text = hwprof("peaks", "--threads", "1", cwd=tmp_path, environment=given, columns=100).stdout
    assert "nothing compiled" in text and text.count("no-such-compiler") == 1
