"""Which line of a traceback is the user's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

import hwprof
from hwprof.workload.raised_at import defined_at, raised_at, raised_by_users_code
from hwprof.workload.tensors import refused

TORCH, HWPROF, STANDARD = torch.__file__, f"{Path(hwprof.__file__).parent}/workload/x.py", json.__file__


def raised_in(*files: str) -> Exception:
    """Called from the first to the last, whose line 1 fails; the others call in line 2."""
    namespace: dict[str, Any] = {}
    exec(compile("def call(): raise ValueError", files[-1], "exec"), namespace)
    for file in reversed(files[:-1]):
        namespace = {"inner": namespace["call"]}
        exec(compile("def call():\n inner()", file, "exec"), namespace)
    try:
        namespace["call"]()
    except ValueError as error:
        assert error.__traceback__ is not None
        return error.with_traceback(error.__traceback__.tb_next)  # without this function
    raise AssertionError


@pytest.mark.parametrize(
    ("files", "place"),
    [
        (("/u/net.py",), "net.py:1"),
        (("/u/net.py", "/u/blocks.py"), "blocks.py:1"),
        (("/u/net.py", TORCH, TORCH), "net.py:2"),
        (("/u/net.py", TORCH, "/u/blocks.py", TORCH), "blocks.py:2"),
        (("/u/net.py", STANDARD), "net.py:2"),
        (("/u/net.py", "/u/venv/lib/python3.11/site-packages/timm/layers.py"), "net.py:2"),
        (("/u/net.py", "/usr/lib/python3/dist-packages/timm/layers.py"), "net.py:2"),
        (("/u/net.py", "<frozen importlib._bootstrap>"), "net.py:2"),
        ((HWPROF, "/u/venv/lib/python3.11/site-packages/timm/models.py", STANDARD), "__init__.py:1"),
        ((HWPROF, "/u/net.py", HWPROF), "net.py:2"),
        ((HWPROF,), None),
    ],
)
def test_the_innermost_line_of_the_users_own_is_named_before_those_of_packages(
    files: tuple[str, ...], place: str | None
) -> None:
    assert raised_at(raised_in(*files)) == place


def test_an_exception_that_was_never_raised_comes_from_nowhere() -> None:
    assert raised_at(ValueError()) is None


def test_a_function_stands_in_the_line_where_it_begins() -> None:
    line = raised_in.__code__.co_firstlineno
    assert defined_at(raised_in) == f"{Path(__file__).name}:{line}"
    assert defined_at(Path) is None


def test_what_the_users_own_line_raises_is_told_with_it_and_what_a_library_raises_is_not() -> None:
    def own() -> None:
        raise ValueError("mine")

    def theirs() -> None:
        torch.zeros(2) @ torch.zeros(3)

    for call, kind in ((own, ValueError), (theirs, RuntimeError)):
        with pytest.raises(kind) as failure:
            call()
        told = raised_by_users_code(failure.value)
        assert (told is not None) is (call is own)
        text = str(refused("m:f", torch.zeros(4, 16), failure.value))
        assert text.startswith("m:f refuses the input 4x16: ")
        assert (f"ValueError: mine ({told})" in text) is (call is own)
