"""C++ names taken apart: the path of a function, and the arguments of its templates."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

# What stands for a part of a name while it is taken apart. None of these is ever in a name.
_LAMBDA, _PARAMETERS, _CALL = "\ue000", "\ue001", "\ue002"
_FIRST_OPERATOR: Final = 0xE100

_ANONYMOUS: Final = re.compile(r"(?:\(anonymous namespace\)|\{anonymous\}|<unnamed>|_GLOBAL__N_1)::")
_OPERATOR: Final = re.compile(
    r"\boperator(?:\(\)|\[\]|<=>|<<=|>>=|->\*|->|<<|>>|&&|\|\||\+\+|--|[-+*/%^&|=!<>]=|[-+*/%^&|=!<>~,]|\"\" ?\w+"
    r"| (?:new|delete)(?:\[\])?| (?=[\w:]))"
)
_QUALIFIERS: Final = re.compile(rf"(?:{_PARAMETERS}| const| volatile| ?&&?| noexcept)+(?=::|$)")
_BRACKET: Final = re.compile(r"(?<!-)[<>()\[\]{}]|,|'(?:lambda|unnamed)\d*'|\$_\d+")
_RETURNS_FUNCTION: Final = re.compile(f" {_PARAMETERS}{_PARAMETERS}")
"""As in ``void (*f(int))(char)``: the name is in brackets too."""

_CLOSING: Final = {"<": ">", "(": ")", "[": "]", "{": "}"}


class CppName(NamedTuple):
    """A name taken apart."""

    path: str  # without return type, what is in brackets, lambdas; empty where the name is not understood
    arguments: list[str]  # those of its templates, in order


def take_apart(text: str) -> CppName:
    """A demangled name. Lambdas belong to the function that they stand in."""
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
        return CppName("", [])
    flat = _QUALIFIERS.sub("", flat.strip()).rstrip()
    conversions = (chr(_FIRST_OPERATOR + place) for place, operator in enumerate(operators) if operator[-1] == " ")
    type_at = min((place for sign in conversions if (place := flat.find(sign)) >= 0), default=len(flat))
    return_type = flat.rfind(" ", 0, type_at)
    path = _without_lambdas(flat[return_type + 1 :])
    return CppName("" if _PARAMETERS in path else restored(path), [restored(argument) for argument in arguments])


def _without_lambdas(path: str) -> str:
    """Nor their ``operator()``, which follows them."""
    parts: list[str] = []
    is_lambda = False
    for part in path.split("::"):
        if _LAMBDA in part:
            is_lambda = True
        elif part and not (is_lambda and part == _CALL):
            parts.append(part)
            is_lambda = False
    return "::".join(parts)


def _without_brackets(text: str) -> tuple[str, list[str]]:
    """The text with signs for what is in brackets at its surface, and the arguments of its templates there."""
    kept: list[str] = []
    arguments: list[str] = []
    opened: list[str] = []
    surface = argument = 0  # where a part of the surface, and an argument, begins
    for found in _BRACKET.finditer(text):
        bracket, place, end = found[0], found.start(), found.end()
        if opened:
            if opened == ["<"] and bracket in ",>":
                arguments.append(text[argument:place].strip())
                argument = end
            _follow(opened, bracket)
            surface = end
        elif bracket in _CLOSING or len(bracket) > 1:
            kept += [text[surface:place], _sign(bracket)]
            surface = argument = end
            if bracket in _CLOSING:
                opened.append(bracket)
    if not opened:
        kept.append(text[surface:])
    return "".join(kept), arguments


def _sign(bracket: str) -> str:
    if bracket == "(":
        return _PARAMETERS
    return "" if bracket in "<[" else _LAMBDA


def _follow(opened: list[str], bracket: str) -> None:
    """Opens or closes it. What was opened within but is not closed is closed too: "less" is written as a bracket is. A
    ``>`` in parentheses is "greater"."""
    if bracket in _CLOSING:
        opened.append(bracket)
    elif bracket == ">":
        if opened[-1] == "<":
            opened.pop()
    elif bracket in _CLOSING.values():
        while opened and _CLOSING[opened.pop()] != bracket:
            pass
