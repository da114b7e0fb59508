"""Which accesses the cache model sees: copies, gathers, scatters, and instructions the disassembler does not know."""

from __future__ import annotations

import platform

import pytest

from collectors.instrumented.engine import processor_flags
from tests.support.simulated_loops import CACHES, FEW, LINE, counted, misses

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="code is followed on x86-64")


def test_copying_is_an_access_for_each_line_on_both_sides() -> None:
    said = counted(
        f"""
        counting = Counting(cache={CACHES!r})
        copy = function(COPY, number, number, number)
        counting(lambda: copy.call(memory, memory + (4 << 20), 1 << 20))
        counting(lambda: copy.call(memory + 60, memory + (4 << 20), 8))
        counting(lambda: copy.call(memory, memory, 0))
        end(found=counting.stop())
        """
    )
    large, across, nothing = said["found"]
    lines = (1 << 20) // LINE
    assert large["l1d-accesses"] - nothing["l1d-accesses"] == 2 * lines
    assert large["l1d-bytes"] - nothing["l1d-bytes"] == 2 * (1 << 20)
    assert misses(large) == pytest.approx([2 * lines] * 3, abs=FEW)
    assert across["l1d-accesses"] - nothing["l1d-accesses"] == 3, "a line read, two written"
    assert nothing["l1d-accesses"] <= FEW


# All: rdi: where, rsi: indices, edx: mask.
GATHERS = {
    # vpcmpeqd ymm2, ymm2, ymm2; vmovdqu ymm1, [rsi]; vpgatherdd ymm0, [rdi+ymm1*4+8], ymm2; vzeroupper; ret
    "avx2": ("c5ed76d2 c5fe6f0e c4e26d90448f08 c5f877 c3", "int32", 8),
    # kmovw k3, edx; vmovdqu32 zmm17, [rsi]; vpgatherdd zmm5{k3}, [rdi+zmm17*4+64];
    # kmovw k3, edx; vpscatterdd [rdi+zmm17*4+64]{k3}, zmm5; vzeroupper; ret
    "avx512f": ("c5f892da 62e17e486f0e 62f27d43906c8f10 c5f892da 62f27d43a06c8f10 c5f877 c3", "int32", 16),
    # kmovw k1, edx; vmovdqu64 zmm9, [rsi]; vgatherqps ymm5{k1}, [rdi+zmm9]; vzeroupper; ret
    "avx512f, 64 bits": ("c5f892ca 6271fe486f0e 62b27d49932c0f c5f877 c3", "int64", 8),
}


@pytest.mark.parametrize("name", GATHERS)
def test_gathers_and_scatters_are_an_access_for_each_element_that_is_not_masked(name: str) -> None:
    if name.partition(",")[0] not in processor_flags():
        pytest.skip(f"the processor has no {name}")
    code, kind, elements = GATHERS[name]
    apart = LINE if kind == "int64" else LINE // 4
    said = counted(
        f"""
        import numpy as np
        counting = Counting(cache={CACHES!r})
        gather = function({code!r}, number, number, number)
        indices = np.arange(-4, {elements} - 4, dtype=np.{kind}) * {apart}  # a line each, backwards too
        arguments = memory + 4096, indices.ctypes.data
        if {name != "avx2"}:
            gather.call(*arguments, 1)
        counting(lambda: gather.call(*arguments, 0b10101))
        counting(lambda: gather.call(*arguments, 0xffff))
        counting(lambda: gather.call(*arguments, 0b00001))
        end(found=counting.stop(), notes=[str(note) for note in counting.collected.notes])
        """
    )
    some, every, one = (found["l1d-accesses"] for found in said["found"])
    times = 2 if name == "avx512f" else 1  # gathered and scattered
    if name == "avx2":
        assert some == every == one, "its mask is always full"
        assert every >= elements
        assert misses(said["found"][0])[2] == pytest.approx(elements, abs=2)
    else:
        assert (some - one, every - one) == (2 * times, (elements - 1) * times)
        assert misses(said["found"][0])[2] == pytest.approx(2, abs=1)
        assert misses(said["found"][1])[2] == pytest.approx(elements - 3, abs=1)
    assert not any("not simulated" in note for note in said["notes"])


# rdi, rsi, rdx: parts of addresses. After each vdpbf16ps, which the disassembler does not know, a mov loads from there:
# [rdi+64]{1to16}, [rdi+rsi*8+128]{1to16}, zmm [rdi+8192], ymm [rdi+rdx+0x3333] (two lines);
# mov r11, rdi; mov r10, rsi; mov r10, rdi; [r11+4096]{1to16}; mov r9, rsi; [r10+r9*4+256]{1to16}; ret
UNKNOWN = (
    "62f27658525710 8b4740 62f276585254f720 8b84f780000000 62e2064052b700200000 8b8700200000 62f2762852941733330000"
    " 8b841733330000 4989fb 4989f2 4989fa 62d27658529300100000 418b8300100000 4989f1 6292765852548a40"
    " 438b848a00010000 c3"
)


def test_addresses_of_instructions_that_the_disassembler_does_not_know() -> None:
    if "avx512_bf16" not in processor_flags():
        pytest.skip("the processor has no AVX512-BF16")
    said = counted(
        f"""
        counting = Counting(cache_model=True)
        unknown = function({UNKNOWN!r}, number, number, number)
        other = function("c3")
        counting(lambda: unknown.call(memory, 1000, 70_000))
        counting(other.call)
        end(found=counting.stop())
        """
    )
    found, nothing = said["found"]
    assert found["l1d-accesses"] - nothing["l1d-accesses"] == 12
    assert found["l1d-bytes"] - nothing["l1d-bytes"] == 4 * 4 + 64 + 32 + 6 * 4
    assert misses(found)[0] == pytest.approx(7, abs=1), "no mov misses what was just loaded"


def test_what_it_cannot_see_is_told() -> None:
    said = counted(
        """
        counting = Counting(cache_model=True)
        compare = function("4889d1 f3a6 c3", number, number, number)  # mov rcx, rdx; repe cmpsb; ret
        counting(lambda: [compare.call(memory, memory, 10) for _ in range(30)])
        counting.stop()
        untraced = counting.collected.detail.cache_model.untraced
        end(notes=[str(note) for note in counting.collected.notes], untraced=untraced)
        """
    )
    assert said["untraced"] >= 30
    assert any(f"{said['untraced']} accesses" in note and "not simulated" in note for note in said["notes"])
