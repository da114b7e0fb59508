"""Which lines are those of a module's class."""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from hwprof.workload.module_code import module_code


def decorated(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*arguments: Any) -> Any:
        return function(*arguments)

    return wrapper


class Base(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.helped(x)

    def helped(self, x: torch.Tensor) -> torch.Tensor:
        def inner() -> torch.Tensor:
            return x

        return inner()

    @staticmethod
    def stands(x: int) -> int:
        return x


class Derived(Base):
    @property
    def looked_at(self) -> int:
        raise AssertionError("nobody may run it")

    @torch.no_grad()
    def helped(self, x: torch.Tensor) -> torch.Tensor:
        return x

    @decorated
    def more(self) -> None: ...


def lines(function: Any) -> tuple[int, int]:
    source, first = inspect.getsourcelines(inspect.unwrap(function))
    return first, first + len(source) - 1


def places(*modules: nn.Module) -> dict[tuple[str, str], tuple[int, int]]:
    rows = module_code({"": nn.Sequential(*modules)}).iter_rows(named=True)
    return {(row["path"], row["function"]): (row["first_line"], row["last_line"]) for row in rows}


def test_functions_are_the_class_s_own_and_those_that_it_has_from_others() -> None:
    found = places(Base(), Derived())
    expected = {
        ("0", "Base.forward"): Base.forward,
        ("0", "Base.helped"): Base.helped,
        ("0", "Base.stands"): Base.stands,
        ("1", "Derived.helped"): Derived.helped,
        ("1", "Derived.more"): Derived.more,
        ("1", "Base.forward"): Base.forward,
        ("1", "Base.stands"): Base.stands,
    }
    assert found == {name: lines(function) for name, function in expected.items()}


def test_what_is_torch_s_has_no_row() -> None:
    assert module_code({"": nn.Sequential(nn.Linear(1, 1), nn.ReLU())}).is_empty()


def test_a_forward_of_the_instance_s_own_counts() -> None:
    layer = nn.Identity()
    layer.__dict__["forward"] = lambda x: x
    ((path, function),) = places(layer)
    assert path == "0" and function.endswith("<lambda>")


def test_a_decorator_that_names_itself_and_code_of_no_text_end() -> None:
    class Odd(nn.Module):
        pass

    def itself() -> None: ...

    itself.__wrapped__ = itself  # type: ignore[attr-defined]
    Odd.forward = itself
    other = types.FunctionType((lambda: None).__code__.replace(co_filename="\udc80", co_qualname="a.\udc80"), {})
    Odd.other = other  # type: ignore[attr-defined]
    assert [function.rpartition(".")[2] for _, function in places(Odd())] == ["itself", "?"]
