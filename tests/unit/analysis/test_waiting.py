"""Code that waits is no work, whatever library it stands in."""

from __future__ import annotations

import polars as pl
import pytest

from hwprof.analysis.sampled_kernels import waiting_table
from hwprof.analysis.waiting import cause


@pytest.mark.parametrize(
    ("domain", "name", "expected"),
    [
        ("openmp", "gomp_team_barrier_wait_end", "OpenMP"),
        ("openmp", None, "OpenMP"),
        ("torch", "gomp_barrier_wait_end", "OpenMP"),  # the runtime in a wheel's own library
        ("other", "__kmp_fork_barrier", "OpenMP"),
        ("python", "take_gil", "GIL"),
        ("other", "blas_thread_server", "OpenBLAS"),  # numpy's own pool, which looks for work
        ("other", "exec_blas", "OpenBLAS"),
        ("system", "___pthread_cond_wait@@GLIBC_2.3.2", "condition"),
        ("system", "__futex_abstimed_wait_common", "futex"),
        ("system", "memcpy", None),
        ("kernel", "futex_wait_queue", "futex"),
        ("kernel", "finish_task_switch.isra.0", "context switch"),
        ("kernel", "clear_page_erms", None),
        ("torch", "futex_wait_queue", None),  # a name of the kernel's says nothing of others
        ("jit", "jit_avx512_common_conv_fwd_kernel_vmm_t", None),
        (None, None, None),
    ],
)
def test_what_a_function_waits_for(domain: str | None, name: str | None, expected: str | None) -> None:
    assert cause(domain, name) == expected


def test_waiting_is_summed_by_cause_with_its_share_of_all() -> None:
    names = [("openmp", "gomp_barrier_wait")] * 5 + [("openmp", None)] + [("kernel", "do_futex")] * 2
    names += [("jit", "jit_conv")] * 2
    sampled = pl.DataFrame(
        {
            "layer": ["a"] * 10,
            "code_range": [names.index(one) for one in names],
            "kernel": [names.index(one) for one in names],
            "code": [domain for domain, _ in names],
            "name": [name for _, name in names],
            "cpu_ns": [1000] * 10,
            **{
                name: pl.Series([None] * 10, dtype=pl.Int64)
                for name in ("instructions", "cycles", "llc_misses")
            },
        }
    )  # fmt: skip
    found = waiting_table(sampled)
    assert found.select("cause", "samples", "cpu_ns", "share").rows() == [
        (None, 8, 8000, 0.8),
        ("OpenMP", 6, 6000, 0.6),
        ("futex", 2, 2000, 0.2),
    ]
    assert (found["share_low"] < found["share"]).all() and (found["share_high"] > found["share"]).all()
    assert waiting_table(sampled.filter(code="jit")).is_empty()
