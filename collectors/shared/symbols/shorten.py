"""Names of C++ functions as a person reads them: no return type, template arguments, parameters, lambdas or clones.

``void at::native::(anonymous namespace)::silu_kernel(at::TensorIteratorBase&)::{lambda()#1}::operator()() const`` is
``at::native::silu_kernel``. Where a function only calls the one that it is given (``std::function`` and its kin,
``wrappers.toml``), the name is that of the given one.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final

from collectors.shared.symbols.cpp_names import take_apart
from collectors.shared.symbols.mangled import names_in
from hwprof.data_files import read_toml

PARALLEL: Final = " (parallel)"
"""What follows the name of a function's part that OpenMP runs on all threads."""

DEEPEST: Final = 8
"""How many wrappers may lie around one another."""

_CLONE: Final = re.compile(r" \[clone ([^\]]*)\]")
_SUFFIX: Final = re.compile(
    r"(?<=.)(?:\.(?:_omp_fn|_omp_cpyfn|part|isra|constprop|cold|lto_priv|localalias|llvm|resolver|default|avx\w*|sse\w*"
    r"|arch_\w+)(?:\.\d+)*)+$"
)
_VERSION: Final = re.compile(r"(?<=\w)@@?[\w.]+$")
_THUNK: Final = re.compile(r"^(?:(?:non-)?virtual thunk to |covariant return thunk to |transaction clone for )+")
_GIVEN: Final = re.compile(r"\{lambda|'lambda|(?:^|[\s<(,])&[(\w]")
"""In a template's argument, a function that is given."""


def shorten(name: str) -> str:
    """The name without what makes it long: never longer than it was, and empty only where it was."""
    bare, clones = _without_clones(name)
    bare = _VERSION.sub("", _THUNK.sub("", bare))
    short = (_mangled(bare) if bare.startswith("_Z") else _function(bare)) or bare
    if "_omp_fn" in clones:
        short += PARALLEL
    return short if 0 < len(short) <= len(name) else name


def _without_clones(name: str) -> tuple[str, str]:
    """A function's name, and what compilers call the part or the variant of it that they made."""
    clones = "".join(_CLONE.findall(name))
    bare = _CLONE.sub("", name)
    suffix = _SUFFIX.search(bare)
    return (bare[: suffix.start()], clones + suffix[0]) if suffix is not None else (bare, clones)


def _function(text: str, depth: int = 0) -> str:
    """The path of a function, or of the one that it wraps; empty where the text is not understood."""
    path, arguments = take_apart(text)
    if depth == DEEPEST or not _is_wrapper(path):
        return path
    inner_wrapper = ""
    for argument in arguments:
        if _GIVEN.search(argument):
            inner = _function(_pointed_at(argument), depth + 1)
            if inner and not _is_wrapper(inner):
                return inner
            inner_wrapper = inner_wrapper or inner
    return inner_wrapper or path


def _mangled(name: str) -> str:
    """As ``_function``, of a name that could not be demangled."""
    names = names_in(name)
    return next((inner for inner in names if not _is_wrapper(inner)), names[-1] if names else "")


def _pointed_at(argument: str) -> str:
    """Of the address of a function the function."""
    if not argument.startswith("&"):
        return argument
    function = argument.lstrip("&")
    return function[1:-1] if function.startswith("(") and function.endswith(")") else function


def _is_wrapper(path: str) -> bool:
    parts = path.split("::")
    wrappers = _wrappers()
    return any("::".join(parts[-count:]) in wrappers for count in range(1, min(len(parts), 6) + 1))


@cache
def _wrappers() -> frozenset[str]:
    return frozenset(read_toml(__name__, "wrappers.toml", dict[str, list[str]])["wrappers"])
