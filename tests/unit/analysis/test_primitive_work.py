"""Operations and bytes of primitives, against what torch's own shapes say of the same problems."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwprof.analysis.primitive_work import Work, work

F32 = "src:f32 wei:f32 dst:f32"
WITH_BIAS = "src:f32 wei:f32 bia:f32 dst:f32"

REPORTED = {
    # as oneDNN 3 reported them, of a layer of torch
    "Conv2d(8, 16, 3, padding=1, groups=4)": (
        "convolution", "g4mb2_ic8oc16_ih10oh10kh3sh1dh0ph1_iw12ow12kw3sw1dw0pw1", WITH_BIAS,
        2 * 16 * 10 * 12 * 2 * 9, 2 * 8 * 120 + 16 * 2 * 9 + 16 + 2 * 16 * 120,
    ),
    "Conv1d(8, 16, 3)": (
        "convolution", "mb2_ic8oc16_ih1oh1kh1sh1dh0ph0_iw50ow48kw3sw1dw0pw0", F32,
        2 * 16 * 48 * 8 * 3, 2 * 8 * 50 + 16 * 8 * 3 + 2 * 16 * 48,
    ),
    "Conv2d(8, 16, (3, 1), dilation=(2, 1))": (
        "convolution", "mb2_ic8oc16_ih10oh6kh3sh1dh1ph0_iw12ow12kw1sw1dw0pw0", F32,
        2 * 16 * 6 * 12 * 8 * 3, 2 * 8 * 120 + 16 * 8 * 3 + 2 * 16 * 72,
    ),
    "ConvTranspose2d(8, 16, 2, stride=2, groups=2)": (
        "deconvolution", "g2mb1_ic8oc16_ih10oh20kh2sh2dh0ph0_iw12ow24kw2sw2dw0pw0", WITH_BIAS,
        8 * 10 * 12 * 8 * 4, 8 * 120 + 16 * 4 * 4 + 16 + 16 * 480,
    ),
    "Linear(16, 8)": ("inner_product", "mb4ic16oc8", WITH_BIAS, 4 * 16 * 8, 64 + 128 + 8 + 32),
    "Linear of an image": ("inner_product", "mb1ic64ih7iw7oc10", F32, 64 * 49 * 10, 64 * 49 + 64 * 490 + 10),
    "bmm": ("matmul", "12x64x32:12x32x48", F32, 12 * 64 * 32 * 48, 12 * (64 * 32 + 32 * 48 + 64 * 48)),
    "a matrix for all": ("matmul", "12x64x32:1x32x48", F32, 12 * 64 * 32 * 48, 12 * 64 * 32 + 32 * 48 + 12 * 64 * 48),
}  # fmt: skip


@pytest.mark.parametrize("layer", REPORTED)
def test_of_a_layer(layer: str) -> None:
    primitive, problem, types, macs, elements = REPORTED[layer]
    assert work(primitive, problem, types) == Work(2.0 * macs, 4.0 * elements)


def test_bytes_are_of_each_tensors_type() -> None:
    found = work("matmul", "64x256:256x512", "src:u8 wei:s8 bia:f32 dst:f32")
    assert found == Work(2.0 * 64 * 256 * 512, 64 * 256 + 256 * 512 + 4 * 512 + 4 * 64 * 512)
    assert work("reorder", "64x256", "src:f32 dst:u8") == Work(0.0, 5 * 64 * 256)
    unknown = work("matmul", "2x3:3x4", "src:f4_e2m1 wei:f32 dst:f32")
    assert unknown is not None and unknown.bytes is None


@pytest.mark.parametrize(
    ("primitive", "problem"),
    [
        ("matmul", "*x256:256x512"),
        ("matmul", "64x256:512x256"),
        ("matmul", "64x256"),
        ("convolution", "mb*_ic8oc16"),
        ("convolution", "ic8oc16"),
        ("reorder", ""),
        ("pooling", "mb1ic8_ih10oh5kh2sh2dh0ph0_iw12ow6kw2sw2dw0pw0"),
        ("eltwise", "1x8x10x12"),
    ],
)
def test_what_is_not_known(primitive: str, problem: str) -> None:
    assert work(primitive, problem, F32) is None


@given(
    st.sampled_from(["convolution", "deconvolution", "inner_product", "matmul", "reorder", "lrn"]), st.text(), st.text()
)
def test_whatever_is_reported_it_does_not_fail(primitive: str, problem: str, types: str) -> None:
    found = work(primitive, problem, types)
    assert found is None or found.flops >= 0


@given(st.lists(st.integers(1, 64), min_size=2, max_size=3), st.integers(1, 64), st.integers(1, 64))
def test_a_product_of_matrices(rows: list[int], inner: int, columns: int) -> None:
    batch = [1] * (len(rows) - 1)
    problem = f"{'x'.join(map(str, [*rows, inner]))}:{'x'.join(map(str, [*batch, inner, columns]))}"
    found = work("matmul", problem, F32)
    assert found is not None and found.flops == 2 * math.prod(rows) * inner * columns
