"""The names within a mangled name that no demangler takes apart.

GNU's, which every Linux has, fails at lambdas in templates in templates: 0.7% of libtorch's functions, and hot ones
(softmax, sort, bernoulli) among them. Where the whole cannot be had its parts can: they stand there in order.
"""

from __future__ import annotations

import re
from typing import Final

_FUNCTION: Final = re.compile(r"Z(?:N[rVK]*(S[0-9A-Z]*_|St)?|(St))?(?=L?\d)")
"""What begins the name of a function: the whole one's, and those of functions that lambdas stand in."""

_VECTOR: Final = re.compile(r"_ZGV[a-z][NM](?:\d+|x)(?:[vu]|[lRLU]\w?\d*|a\d+)*_(?=[A-Za-z])")
"""What a compiler puts before the name of a function whose vector version it is: instruction set, mask, width, kinds of
parameters."""

_LENGTH: Final = re.compile(r"L?(\d+)")
ANONYMOUS: Final = "_GLOBAL__N_"


def names_in(mangled: str) -> list[str]:
    """Qualified names of functions in order: first the function's own, then of those whose lambdas it is given. A
    beginning that refers to an earlier name is left out, unless it is the first one's."""
    if (vector := _VECTOR.match(mangled)) is not None:
        return [mangled[vector.end() :]]
    found: list[str] = []
    place = 0
    while (begin := _FUNCTION.search(mangled, place)) is not None:
        parts, place = _identifiers(mangled, begin.end())
        if "St" in begin.groups():
            parts.insert(0, "std")
        elif begin[1] == "S_" and found:
            parts.insert(0, found[0].partition("::")[0])
        if parts:
            found.append("::".join(parts))
    return found


def _identifiers(mangled: str, place: int) -> tuple[list[str], int]:
    """Those that follow one another from ``place`` on, and where they end."""
    parts: list[str] = []
    while (length := _LENGTH.match(mangled, place)) is not None:
        end = length.end() + int(length[1])
        part = mangled[length.end() : end]
        if end > len(mangled) or not part.isidentifier():
            return parts, length.end()
        if not part.startswith(ANONYMOUS):
            parts.append(part)
        place = end
    return parts, place
