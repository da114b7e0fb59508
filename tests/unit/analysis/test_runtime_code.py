"""What code of runtimes is for: it has no names."""

from __future__ import annotations

import pytest

from hwprof.analysis.time_budget import COMPUTE, OTHER, WAITING, part_of


@pytest.mark.parametrize(
    ("domain", "name", "part"),
    [
        ("runtime", None, COMPUTE),
        ("runtime", "MlasNchwcConv", COMPUTE),
        ("runtime", "operator new(unsigned long)", "allocation"),
        ("jit", None, COMPUTE),
        ("torch", None, OTHER),
        ("tbb", None, WAITING),
        ("tbb", "tbb::detail::r1::wait", WAITING),
    ],
)
def test_code_without_a_name_computes_and_tbb_s_waits(domain: str, name: str | None, part: str) -> None:
    assert part_of(domain, name, None) == part
