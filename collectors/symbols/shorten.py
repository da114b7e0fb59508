"""Names of C++ functions as a person reads them: no return type, template arguments, parameters, lambdas or clones.

``void at::native::(anonymous namespace)::silu_kernel(at::TensorIteratorBase&)::{lambda()#1}::operator()() const`` is
``at::native::silu_kernel``. Where a function only calls the one that it is given (``std::function`` and its kin,
``wrappers.toml``), the name is that of the given one.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib import resources
from typing import Final, NamedTuple

from collectors.symbols.mangled import names_in

PARALLEL: Final = " (parallel)"
"""What follows the name of a function's part that OpenMP runs on all threads."""

DEEPEST: Final = 8
"""How many wrappers may lie around one another."""

# What stands for a part of a name while it is taken apart. None of these is ever in a name.
_LAMBDA, _PARAMETERS, _CALL = "\ue000", "\ue001", "\ue002"
_FIRST_OPERATOR: Final = 0xE100

_CLONE: Final = re.compile(r" \[clone ([^\]]*)\]")
_SUFFIX: Final = re.compile(
    r"(?<=.)(?:\.(?:_omp_fn|_omp_cpyfn|part|isra|constprop|cold|lto_priv|localalias|llvm|resolver|default|avx\w*|sse\w*"
    r"|arch_\w+)(?:\.\d+)*)+$"
)
_VERSION: Final = re.compile(r"(?<=\w)@@?[\w.]+$")
_THUNK: Final = re.compile(r"^(?:(?:non-)?virtual thunk to |covariant return thunk to |transaction clone for )+")
_ANONYMOUS: Final = re.compile(r"(?:\(anonymous namespace\)|\{anonymous\}|<unnamed>|_GLOBAL__N_1)::")
_OPERATOR: Final = re.compile(
    r"\boperator(?:\(\)|\[\]|<=>|<<=|>>=|->\*|->|<<|>>|&&|\|\||\+\+|--|[-+*/%^&|=!<>]=|[-+*/%^&|=!<>~,]|\"\" ?\w+"
    r"| (?:new|delete)(?:\[\])?| (?=[\w:]))"
)
_QUALIFIERS: Final = re.compile(rf"(?:{_PARAMETERS}| const| volatile| ?&&?| noexcept)+(?=::|$)")
_BRACKET: Final = re.compile(r"(?<!-)[<>()\[\]{}]|,|'(?:lambda|unnamed)\d*'|\$_\d+")
_RETURNS_FUNCTION: Final = re.compile(f" {_PARAMETERS}{_PARAMETERS}")
"""As in ``void (*f(int))(char)``: the name is in brackets too."""

_GIVEN: Final = re.compile(r"\{lambda|'lambda|(?:^|[\s<(,])&[(\w]")
"""In a template's argument, a function that is given."""

_CLOSING: Final = {"<": ">", "(": ")", "[": "]", "{": "}"}


class _Taken(NamedTuple):
    """A name taken apart."""

    path: str  # without what is in brackets
    arguments: list[str]  # those of its templates, in order


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
    path, arguments = _take_apart(text)
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


def _take_apart(text: str) -> _Taken:
    operators: list[str] = []

    def sign(found: re.Match[str]) -> str:
        if found[0] == "operator()":
            return _CALL
        operators.append(found[0])
        return chr(_FIRST_OPERATOR + len(operators) - 1)

    def restored(part: str) -> str:
        for number, operator in enumerate(operators):
            part = part.replace(chr(_FIRST_OPERATOR + number), operator)
        return part.replace(_CALL, "operator()")

    marked = _OPERATOR.sub(sign, _ANONYMOUS.sub("", text))
    flat, arguments = _without_brackets(marked)
    if _RETURNS_FUNCTION.search(flat):
        return _Taken("", [])
    flat = _QUALIFIERS.sub("", flat.strip()).rstrip()
    conversions = (chr(_FIRST_OPERATOR + place) for place, operator in enumerate(operators) if operator[-1] == " ")
    type_at = min((place for sign in conversions if (place := flat.find(sign)) >= 0), default=len(flat))
    return_type = flat.rfind(" ", 0, type_at)
    parts: list[str] = []
    called = False  # what is called is a lambda
    for part in flat[return_type + 1 :].split("::"):
        if _LAMBDA in part:
            called = True
        elif part and not (called and part == _CALL):
            parts.append(part)
            called = False
    path = "::".join(parts)
    return _Taken("" if _PARAMETERS in path else restored(path), [restored(argument) for argument in arguments])


def _without_brackets(text: str) -> tuple[str, list[str]]:
    """The text with signs for what is in brackets at its surface, and the arguments of its templates there."""
    kept: list[str] = []
    arguments: list[str] = []
    open_brackets: list[str] = []
    surface = argument = 0  # where a stretch of the surface, and an argument, begins
    for found in _BRACKET.finditer(text):
        bracket, place = found[0], found.start()
        if not open_brackets:
            if bracket in _CLOSING or len(bracket) > 1:
                kept += [text[surface:place], _sign(bracket)]
                surface, argument = found.end(), found.end()
                if bracket in _CLOSING:
                    open_brackets.append(bracket)
        elif bracket in _CLOSING:
            open_brackets.append(bracket)
        else:
            ends_template = open_brackets == ["<"] and bracket in ",>"
            if ends_template:
                arguments.append(text[argument:place].strip())
                argument = found.end()
            if bracket != ",":
                _close(open_brackets, bracket)
            if not open_brackets:
                surface = found.end()
    if not open_brackets:
        kept.append(text[surface:])
    return "".join(kept), arguments


def _sign(bracket: str) -> str:
    if bracket == "(":
        return _PARAMETERS
    return "" if bracket in "<[" else _LAMBDA


def _close(open_brackets: list[str], bracket: str) -> None:
    """Takes the bracket that is closed, and what was opened within it but never closed: "less" is written as a bracket
    is. A ``>`` in parentheses is "greater"."""
    if bracket == ">":
        if open_brackets[-1] == "<":
            open_brackets.pop()
        return
    while open_brackets and _CLOSING[open_brackets.pop()] != bracket:
        pass


def _is_wrapper(path: str) -> bool:
    parts = path.split("::")
    wrappers = _wrappers()
    return any("::".join(parts[-count:]) in wrappers for count in range(1, min(len(parts), 6) + 1))


@cache
def _wrappers() -> frozenset[str]:
    text = resources.files("collectors.symbols").joinpath("wrappers.toml").read_text(encoding="utf-8")
    return frozenset(tomllib.loads(text)["wrappers"])
