"""The glossary's terms (``terms.toml``), and how a word finds its term."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from functools import cache
from typing import Final

import msgspec

from hwprof.data_files import read_toml
from hwprof.errors import HwprofError

LIKENESS: Final = 0.7
"""Of two spellings (difflib's ratio) from which on one may be meant for the other: below it are mere chance matches."""

SHORT: Final = 3
"""Letters."""

_UNIT = re.compile(r"\s+(ms|W|GB/s|%)$")

_SERIES: Final = re.compile(r"(?P<kind>[a-z][\w-]+)/(?P<name>[\w-]{2,})")


class Term(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One entry; the head of ``terms.toml`` explains the fields."""

    term: str
    topic: str
    meaning: str
    names: tuple[str, ...] = ()
    metric: str | None = None
    formula: str | None = None
    provenance: str | None = None
    source: str | None = None
    where: str | None = None
    more: tuple[str, ...] = ()
    see: tuple[str, ...] = ()


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    term: tuple[Term, ...]


@cache
def terms() -> tuple[Term, ...]:
    """Every term, in the order of its topics."""
    return read_toml(__name__, "terms.toml", _File).term


@cache
def by_name() -> dict[str, Term]:
    """The terms by every name that they are looked up by, as ``normal`` spells it.

    Raises ``HwprofError`` where two terms have the same.
    """
    found: dict[str, Term] = {}
    for term in terms():
        for name in dict.fromkeys(normal(name) for name in (term.term, *term.names)):
            if found.setdefault(name, term) is not term:
                raise HwprofError(f"glossary: {name!r} is {found[name].term} and {term.term}")
    return found


def find(word: str) -> Term | None:
    """The term of that name: as it is written, else without unit, marks and plural, as in a table's header, else
    as a series is called that is of a kind (``memory/pss``)."""
    names = by_name()
    bare = unmarked(_UNIT.sub("", word))
    spellings = [normal(word), normal(bare), normal(bare).removesuffix("s")]
    if match := _SERIES.fullmatch(word):
        spellings += [normal(match["name"]), normal(match["kind"])]
    return next((names[spelling] for spelling in spellings if spelling in names), None)


def is_name(word: str) -> bool:
    """Whether it is a term's name as it is written, marks and plural aside."""
    bare = normal(unmarked(word))
    return not {normal(word), bare, bare.removesuffix("s")}.isdisjoint(by_name())


def unmarked(word: str) -> str:
    """A table's header without the marks of where its figures come from."""
    return word.rstrip("~°†‡*+^") or word


def nearest(word: str, others: Iterable[str] = ()) -> list[str]:
    """Names that are spelt much like that one, at most three: terms, and ``others``."""
    spellings = {name: term.term for name, term in by_name().items()} | {normal(name): name for name in others}
    near = difflib.get_close_matches(normal(word), spellings, n=6, cutoff=LIKENESS)
    near = near or [spelling for spelling in spellings if _is_one_letter_off(normal(word), spelling)]
    return list(dict.fromkeys(spellings[spelling] for spelling in near))[:3]


def _is_one_letter_off(word: str, name: str) -> bool:
    """Of three letters, of which two that are the same are less than ``LIKENESS``: cpy for cpi, cip for cpi."""
    if not len(word) == len(name) == SHORT:
        return False
    differing = [(one, other) for one, other in zip(word, name, strict=True) if one != other]
    return len(differing) == 1 or (len(differing) == 2 and differing[0] == differing[1][::-1])


def normal(word: str) -> str:
    """The word without what does not matter: case (but of a single letter: W are watts, w marks a figure), blanks,
    hyphens, underscores."""
    return re.sub(r"[\s_-]+", "", word.casefold() if len(word) > 1 else word) or word
