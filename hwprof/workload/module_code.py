"""Where the code of the model's modules lies: which lines are those of a module's class."""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

import polars as pl
import torch

from hwprof.run.schema import conform, empty
from hwprof.workload.layer_hooks import layers

FRAMEWORK: Final = f"{Path(torch.__file__).parent}/"

FORWARD: Final = "forward"

WRAPPED: Final = 32
"""So many decorators are looked through; one that names itself would have no end."""


class Function(NamedTuple):
    """Of a class, or of its bases."""

    function: str
    file: str
    first_line: int
    last_line: int


def module_code(modules: Mapping[str, torch.nn.Module]) -> pl.DataFrame:
    """The table ``module_code``: of each module the functions of its class, also those that it has from others, each
    once; what is torch's has no row. Nothing of a class is run to find them."""
    by_class: dict[type, list[Function]] = {}
    rows: list[tuple[str, *tuple[str | int, ...]]] = []
    for prefix, root in modules.items():
        for path, module in layers(prefix, root):
            kind = type(module)
            if kind not in by_class:
                by_class[kind] = list(_functions(kind))
            own = _where(vars(module).get(FORWARD))  # what an instance has in the place of its class's
            rows += [(path, *function) for function in (*by_class[kind], *own)]
    if not rows:
        return empty("module_code")
    names = ["path", *Function._fields]
    return conform("module_code", pl.DataFrame(rows, schema=names, orient="row", infer_schema_length=None))


def _functions(kind: type) -> Iterator[Function]:
    seen: set[str] = set()
    for base in type.__getattribute__(kind, "__mro__"):
        for name, value in vars(base).items():
            if name not in seen:
                seen.add(name)
                yield from _where(value)


def _where(value: object) -> Iterator[Function]:
    """Behind decorators; nothing where it is no function in Python, or torch's."""
    for _ in range(WRAPPED):
        if isinstance(value, (staticmethod, classmethod, types.MethodType)):
            value = value.__func__
        elif isinstance(value, types.FunctionType) and "__wrapped__" in vars(value):
            value = vars(value)["__wrapped__"]
        else:
            break
    if isinstance(value, types.FunctionType) and not value.__code__.co_filename.startswith(FRAMEWORK):
        code = value.__code__
        yield Function(_as_text(code.co_qualname), _as_text(code.co_filename), code.co_firstlineno, _last_line(code))


def _as_text(text: str) -> str:
    """Names may hold halves of characters, which no table takes."""
    return text.encode(errors="replace").decode()


def _last_line(code: types.CodeType) -> int:
    """With those of the functions inside of it."""
    own = max((line for _, _, line in code.co_lines() if line is not None), default=code.co_firstlineno)
    return max([own, *(_last_line(one) for one in code.co_consts if isinstance(one, types.CodeType))])
