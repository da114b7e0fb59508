"""How long names are cut so that rows of a table stay different: what tells a row from the others is kept.

Names of layers, kernels and types are parts behind one another (``encoder.layer.7.output.dense``,
``at::native::silu_kernel``). Parts are left out of the middle, for an ellipsis; those by which a name differs from
others that would read alike stay.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from os.path import commonprefix
from typing import Final

from hwprof.report.text.figures import shorten

PART: Final = re.compile(r"(?:(?!::)[^._/ ,<])*(?:::|[._/ ,<]|$)")
"""Of a name: with the separator behind it."""

ROUNDS: Final = 8
"""How often parts are added that tell rows apart; the next ones may make them like others."""


def shorten_apart(texts: Sequence[str], width: int, ellipsis: str) -> list[str]:
    """The texts in at most ``width`` characters. Different ones stay different, where there is room for a number."""
    names = {text: _Name(text, width, ellipsis) for text in dict.fromkeys(texts) if len(text) > width}
    cut = {text: text for text in texts} | {text: name.cut(()) for text, name in names.items()}
    needed: dict[str, set[int]] = {text: set() for text in names}
    for _ in range(ROUNDS):
        alike = _alike(cut, names)
        if not alike:
            break
        for group in alike:
            for text, places in _branches([names[text] for text in group]).items():
                needed[text] |= places
                cut[text] = names[text].cut(needed[text])
    for group in _alike(cut, names):
        cut |= _windows(group, cut, width, ellipsis)
    taken = {shown for text, shown in cut.items() if text not in names}
    for text in names:
        cut[text] = _numbered(cut[text], taken, width, ellipsis)
        taken.add(cut[text])
    return [cut[text] for text in texts]


class _Name:
    """A name that is too long, in parts. What it is indented by stays."""

    def __init__(self, text: str, width: int, ellipsis: str) -> None:
        self.text = text
        self.indent = text[: len(text) - len(text.lstrip(" "))]
        self.parts = [part for part in PART.findall(text[len(self.indent) :]) if part]
        self._width, self._ellipsis = width, ellipsis

    def cut(self, needed: Iterable[int]) -> str:
        """With these parts, and with as many others as there is room for, from both ends on; where the needed ones
        have no room, cut by characters."""
        kept = set(needed)
        if kept and len(self._shown(kept)) > self._width:
            return shorten(self.text, self._width, self._ellipsis)
        number = len(self.parts)
        for place in sorted(range(number), key=lambda place: min(2 * (number - 1 - place), 2 * place + 1)):
            if len(self._shown(kept | {place})) <= self._width:
                kept.add(place)
        return self._shown(kept) if kept else shorten(self.text, self._width, self._ellipsis)

    def _shown(self, kept: set[int]) -> str:
        """An ellipsis stands for parts in a row, and has the dot of a path behind it."""
        text = self.indent
        for place, part in enumerate(self.parts):
            if place in kept:
                text += part
            elif place + 1 in kept or place + 1 == len(self.parts):
                dotted = part.endswith(".") and not self._ellipsis.endswith(".")
                text += self._ellipsis + "." * dotted
        return text


def _alike(cut: dict[str, str], names: dict[str, _Name]) -> list[list[str]]:
    """The cut texts that read alike, in groups."""
    groups: dict[str, list[str]] = {}
    for text in names:
        groups.setdefault(cut[text], []).append(text)
    return [group for group in groups.values() if len(group) > 1]


def _branches(names: Sequence[_Name]) -> dict[str, set[int]]:
    """By text: the places of the parts at which it goes another way than others do that begin alike."""
    ways: dict[tuple[str, ...], set[str]] = {}
    for name in names:
        for place in range(len(name.parts) + 1):
            following = name.parts[place] if place < len(name.parts) else ""
            ways.setdefault(tuple(name.parts[:place]), set()).add(following)
    return {
        name.text: {place for place in range(len(name.parts)) if len(ways[tuple(name.parts[:place])]) > 1}
        for name in names
    }


def _windows(group: Sequence[str], cut: dict[str, str], width: int, ellipsis: str) -> dict[str, str]:
    """Of texts whose parts that tell them apart have no room: each from where it differs from the others on."""
    ordered = sorted(group)
    found = {}
    for number, text in enumerate(ordered):
        beside = [*ordered[max(number - 1, 0) : number], *ordered[number + 1 : number + 2]]
        first = max(len(commonprefix([text, other])) for other in beside)  # noqa: RUF071 - by characters
        room = width - 2 * len(ellipsis)
        if room < 1:
            return {one: cut[one] for one in group}
        begin = min(first, len(text) - room)
        rest = text[begin:]
        found[text] = ellipsis + (rest if len(rest) <= width - len(ellipsis) else rest[:room] + ellipsis)
    return found


def _numbered(text: str, taken: set[str], width: int, ellipsis: str) -> str:
    """The text; where another row reads the same, with a number at its end, if there is room for that."""
    number, shown = 1, text
    while shown in taken:
        number += 1
        mark = f"{ellipsis}{number}"
        if len(mark) >= width:
            return text
        shown = text[: width - len(mark)] + mark
    return shown
