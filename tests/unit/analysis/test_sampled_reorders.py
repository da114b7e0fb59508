"""Which part of the processor time goes into changes of layout, by the names of sampled functions."""

from __future__ import annotations

import polars as pl
import pytest

from hwprof.analysis.implementations import is_reorder
from hwprof.analysis.sampled_kernels import reorder_table

CONVOLUTION, BLOCKED, GENERAL, PLAIN, PAGE_FAULT, NAMELESS = range(6)
KERNELS = {
    CONVOLUTION: ("jit", "jit_avx512_common_conv_fwd_kernel_vmm_t"),
    BLOCKED: ("jit", "jit_single_blk_kernel"),
    GENERAL: ("jit", "jit_uni_reorder_kernel_f32"),
    PLAIN: ("torch", "dnnl::impl::cpu::x64::jit_blk_reorder_t::execute"),
    PAGE_FAULT: ("kernel", "clear_page_erms"),
    NAMELESS: ("jit", None),
}


def inside(rows: list[tuple[str, int, int]]) -> pl.DataFrame:
    """Samples (layer, kernel, how many of a millisecond)."""
    made = [
        {"layer": layer, "kernel": kernel, "code_range": kernel, "code": KERNELS[kernel][0], "name": KERNELS[kernel][1]}
        for layer, kernel, number in rows
        for _ in range(number)
    ]
    counters = {name: pl.lit(None, pl.Int64) for name in ("cycles", "instructions", "llc_misses")}
    schema = {"layer": pl.String, "kernel": pl.Int64, "code_range": pl.Int64, "code": pl.String, "name": pl.String}
    return pl.DataFrame(made, schema=schema).with_columns(cpu_ns=pl.lit(1_000_000, pl.Int64), **counters)


def test_a_reorders_page_faults_are_not_its_own() -> None:
    """oneDNN's clock runs on through them: what it has is the sum."""
    rows = [("a", CONVOLUTION, 60), ("a", BLOCKED, 5), ("a", PAGE_FAULT, 30), ("b", PLAIN, 3), ("b", GENERAL, 2)]
    found = reorder_table(inside([*rows, ("c", CONVOLUTION, 100)]))
    assert found is not None
    assert found.select("layer", "samples", "cpu_ns", "share", "of_samples").rows() == [
        (None, 10, 10_000_000, pytest.approx(10 / 200), 200),
        ("a", 5, 5_000_000, pytest.approx(5 / 95), 95),
        ("b", 5, 5_000_000, pytest.approx(1.0), 5),
        ("c", 0, 0, 0.0, 100),
    ]
    assert found.filter((pl.col("share_low") > pl.col("share")) | (pl.col("share_high") < pl.col("share"))).is_empty()


def test_where_no_code_made_at_run_time_has_a_name_nobody_knows() -> None:
    assert reorder_table(inside([("a", NAMELESS, 10), ("a", PLAIN, 5)])) is None
    some = reorder_table(inside([("a", NAMELESS, 10), ("a", BLOCKED, 10)]))
    assert some is not None and some["share"][0] == 0.5
    none_made = reorder_table(inside([("a", PAGE_FAULT, 10)]))
    assert none_made is not None and none_made["samples"].to_list() == [0, 0]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("jit_single_blk_kernel", True),
        ("jit_uni_reorder_kernel_f32", True),
        ("dnnl::impl::cpu::simple_reorder_impl<…>::execute", True),
        ("dnnl::impl::cpu::x64::tr::jit_uni_reorder_kernel_f32_t::generate", False),  # makes one
        ("dnnl::impl::reorder_primitive_desc_create", False),
        ("ideep::tensor::reorder_if_differ_in", False),
        ("at::TensorIteratorBase::reorder_dimensions", False),  # PyTorch's, of dimensions
        ("jit_avx512_common_1x1_conv_kernel_t", False),
        (None, False),
    ],
)
def test_what_executes_a_reorder(name: str | None, expected: bool) -> None:
    assert is_reorder(name) is expected
