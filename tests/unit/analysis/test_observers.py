"""Functions that are there because somebody looks are no layer's."""

from __future__ import annotations

import pytest

from hwprof.analysis.observers import observes


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        ("torch::profiler::impl::ThreadLocalSubqueue::begin_op", True),
        ("perf_event_update_userpage", True),
        ("sgemm_t_n23", False),
        ("at::native::perform", False),
    ],
)
def test_by_how_their_names_begin(kernel: str, expected: bool) -> None:
    assert observes(kernel) == expected
