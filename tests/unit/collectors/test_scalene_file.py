"""Scalene's file may be anything; what is a line in it is one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.scalene.functions import function_at, functions
from collectors.scalene.profile_file import MB, read, shortened
from hwprof.errors import HwprofError

LINE: dict[str, Any] = {
    "lineno": 7,
    "n_cpu_percent_python": 10.0,
    "n_cpu_percent_c": 30.0,
    "n_sys_percent": 1,
    "n_core_utilization": 0.5,
    "cpu_samples_list": [1.5, 2.5],
    "n_malloc_mb": 3.0,
    "n_growth_mb": 2.0,
    "n_peak_mb": 2.5,
    "n_python_fraction": 0.25,
    "n_copy_mb_s": 1.0,
}


def profile(*lines: Any, **more: Any) -> bytes:
    return msgspec.json.encode({"elapsed_time_sec": 2.0, "files": {"net.py": {"lines": list(lines)}}, **more})


def test_a_line_has_its_shares_and_bytes() -> None:
    found = read(profile(LINE, samples=[[5, 1.0], ["x"], [-1, 2], [4e18, 1], [6, 1e12], [7, 0.5]]))
    (line,) = found.lines
    assert (line.file, line.line, line.samples, line.core_utilization) == ("net.py", 7, 2, 0.5)
    assert (line.python_share, line.native_share, line.system_share) == (0.1, 0.3, 0.01)
    assert (line.allocated_bytes, line.peak_bytes, line.copy_bytes_per_s) == (3 * MB, MB * 5 // 2, MB)
    assert found.footprint == [(5, MB), (7, MB // 2)]
    assert (found.elapsed_s, found.refused, found.refused_points) == (2.0, 0, 4)


@pytest.mark.parametrize(
    "wrong",
    [
        {"lineno": 0},
        {"lineno": "7"},
        {"n_cpu_percent_c": "x"},
        {"n_malloc_mb": None},
        {"n_cpu_percent_c": -500},
        {"n_cpu_percent_python": 1e6},
        {"n_malloc_mb": -5},
        {"n_malloc_mb": 1e13},
        {"n_peak_mb": 8e12},
        {"n_copy_mb_s": -3},
        {"n_python_fraction": 7},
    ],
)
def test_a_line_that_is_none_costs_itself_only(wrong: dict[str, Any]) -> None:
    found = read(profile(LINE | wrong, LINE, 5, "line"))
    assert (len(found.lines), found.refused) == (1, 3)


@pytest.mark.parametrize("elapsed_s", [-5.0, 1e300, None, "2"])
def test_a_time_that_is_none_is_no_profile(elapsed_s: object) -> None:
    with pytest.raises(HwprofError, match="how long"):
        read(profile(LINE, elapsed_time_sec=elapsed_s))


def test_lines_that_cost_nothing_are_left_out() -> None:
    idle = dict.fromkeys(LINE, 0) | {"lineno": 3, "cpu_samples_list": []}
    assert [line.line for line in read(profile(idle, LINE)).lines] == [7]
    assert [
        line["lineno"] for line in msgspec.json.decode(shortened(profile(idle, LINE)))["files"]["net.py"]["lines"]
    ] == [7]


def test_lines_of_other_threads_have_time_and_no_samples() -> None:
    """Scalene lists samples of the main thread alone: a pool's `get` had 66% of the time, and was lost."""
    of_pool = dict.fromkeys(LINE, 0) | {"lineno": 81, "n_cpu_percent_c": 66.0, "cpu_samples_list": []}
    assert [(line.line, line.native_share, line.samples) for line in read(profile(of_pool)).lines] == [(81, 0.66, 0)]


@given(st.binary(max_size=60) | st.recursive(st.none() | st.integers() | st.text(), st.lists).map(msgspec.json.encode))
def test_any_file_is_a_profile_or_an_error(text: bytes) -> None:
    with pytest.raises(HwprofError):
        read(text)


def test_a_line_is_in_the_innermost_function(tmp_path: Path) -> None:
    source = tmp_path / "net.py"
    source.write_text(
        "class Net:\n    def forward(self):\n        def inner():\n            return 1\n        return inner()\n"
    )
    spans = functions(source)
    assert [function_at(spans, line) for line in (1, 2, 4, 5, 9)] == [
        None, "Net.forward", "Net.forward.inner", "Net.forward", None,
    ]  # fmt: skip
    source.write_text("def broken(:\n")
    assert functions(source) == functions(tmp_path) == functions(tmp_path / "none.py") == []
