"""How long names are cut so that rows of a table stay different: what tells a row from the others is kept.

Names of layers, kernels and types are parts behind one another (``encoder.layer.7.output.dense``,
``at::native::silu_kernel``). Parts are left out of the middle, for an ellipsis; those by which a name differs from
others that would read alike stay, and so do those without which it could be one of several other names.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from functools import cache
from os.path import commonprefix
from typing import Final

from hwprof.analysis.owners import OWN
from hwprof.report.text.figures import shorten

PART: Final = re.compile(r"(?:(?!::)[^._/ ,<])*(?:::|[._/ ,<]|$)")
"""Of a name: with the separator behind it."""

LEAD: Final = re.compile(r" *(?:\d+% )?")
"""What stands before a name and stays: blanks, and a share."""

LEAST: Final = 6
"""With less room for the name itself, what stands around it is cut as well."""

LONGEST: Final = 2000
"""Of a longer name only the characters at both ends are parts: names come from outside, and no terminal is as wide."""

ROUNDS: Final = 8
"""How often parts are added that tell rows apart; the next ones may make them like others."""


def shorten_apart(texts: Sequence[str], width: int, ellipsis: str, among: Sequence[str] = ()) -> list[str]:
    """The texts in at most ``width`` characters. Different ones stay different, where there is room for a number.
    ``among``: further names that a reader could take a cut one for."""
    names = {text: _Name(text, width, ellipsis) for text in dict.fromkeys(texts) if len(text) > width}
    if not names:
        return list(texts)
    cut = {text: text for text in texts} | {text: name.cut(()) for text, name in names.items()}
    needed: dict[str, set[int]] = {text: set() for text in names}
    for _ in range(ROUNDS):
        alike = _alike(cut, names)
        if not alike:
            break
        for group in alike:
            branches = _branches([names[text].parts for text in group])
            for text in group:
                needed[text] |= branches[names[text].parts]
                cut[text] = names[text].cut(needed[text])
    _say_which(names, cut, needed, [*texts, *among])
    for group in _alike(cut, names):
        cut |= _windows([names[text] for text in group], cut)
    taken = {shown for text, shown in cut.items() if text not in names}
    for text, name in names.items():
        cut[text] = name.numbered(cut[text], taken)
        taken.add(cut[text])
    return [cut[text] for text in texts]


class _Name:
    """A name that is too long, in parts. What stands before it stays, and that it is a module's own code."""

    def __init__(self, text: str, width: int, ellipsis: str) -> None:
        self.text = text
        self.lead, self.body, self.tail = _around(text)
        if width - len(self.lead) - len(self.tail) < LEAST:
            self.lead, self.body, self.tail = "", text, ""
        self.parts = _parts(self.body, ellipsis)
        self.room = width - len(self.lead) - len(self.tail)
        self.ellipsis = ellipsis

    def fits(self, needed: Collection[int]) -> bool:
        """Whether there is room for these parts."""
        return len(self._shown(needed)) <= self.room

    def kept(self, needed: Iterable[int]) -> set[int]:
        """These parts, and as many others as there is room for, from both ends on."""
        kept = set(needed)
        number, length = len(self.parts), len(self._shown(kept))
        for place in sorted(range(number), key=lambda place: min(2 * (number - 1 - place), 2 * place + 1)):
            longer = length + self._growth(kept, place)
            if longer <= self.room and place not in kept:
                kept.add(place)
                length = longer
        return kept

    def cut(self, needed: Collection[int]) -> str:
        """With these parts and as many others as fit; where the needed ones have no room, cut by characters."""
        kept = self.kept(needed) if not needed or self.fits(needed) else ()
        return self.framed(self._shown(kept) if kept else shorten(self.body, self.room, self.ellipsis))

    def framed(self, body: str) -> str:
        """With what stands around the name."""
        return self.lead + body + self.tail

    def numbered(self, shown: str, taken: Collection[str]) -> str:
        """The cut text; where another row reads the same, with a number at its end, if there is room for that."""
        number, found = 1, shown
        body = shown[len(self.lead) : len(shown) - len(self.tail)]
        while found in taken:
            number += 1
            mark = f"{self.ellipsis}{number}"
            if len(mark) >= self.room:
                return shown
            found = self.framed(body[: self.room - len(mark)] + mark)
        return found

    def _shown(self, kept: Collection[int]) -> str:
        """An ellipsis stands for parts in a row, and has the dot of a path behind it."""
        text = ""
        for place, part in enumerate(self.parts):
            if place in kept:
                text += part
            elif place + 1 in kept or place + 1 == len(self.parts):
                text += self._left_out(place)
        return text

    def _left_out(self, last: int) -> str:
        """What stands for parts in a row, this one the last of them."""
        dotted = self.parts[last].endswith(".") and not self.ellipsis.endswith(".")
        return self.ellipsis + "." * dotted

    def _growth(self, kept: Collection[int], place: int) -> int:
        """By how many characters the shown text is longer with this part as well: it parts those that are left out."""
        growth = len(self.parts[place])
        if place > 0 and place - 1 not in kept:
            growth += len(self._left_out(place - 1))
        if place + 1 == len(self.parts) or place + 1 in kept:
            growth -= len(self._left_out(place))
        return growth


def _around(text: str) -> tuple[str, str, str]:
    """What stands before a name, the name, and what says that it is a module's own code."""
    match = LEAD.match(text)
    lead = match[0] if match is not None else ""
    tail = OWN if text.endswith(OWN) else ""
    return lead, text[len(lead) : len(text) - len(tail)], tail


@cache
def _parts(body: str, ellipsis: str) -> tuple[str, ...]:
    if len(body) > LONGEST:
        body = body[: LONGEST // 2] + ellipsis + body[-LONGEST // 2 :]
    return tuple(part for part in PART.findall(body) if part)


def _say_which(names: dict[str, _Name], cut: dict[str, str], needed: dict[str, set[int]], known: Sequence[str]) -> None:
    """Cut names whose parts all stand, in this order, in another one of the ``known`` get those by which they differ,
    where these have room."""
    ellipsis = next(iter(names.values())).ellipsis
    numbers: dict[tuple[str, ...], int] = {}
    others: dict[str, dict[str, set[int]]] = {}
    for _, body, tail in map(_around, dict.fromkeys(known)):
        parts = _parts(body, ellipsis)
        number = numbers.setdefault(parts, len(numbers))
        for part in parts:
            others.setdefault(tail, {}).setdefault(part, set()).add(number)
    every = list(numbers)
    for text, name in names.items():
        for _ in range(ROUNDS):
            kept = name.kept(needed[text])
            if not kept or cut[text] != name.cut(needed[text]):
                break
            shown = [name.parts[place] for place in sorted(kept)]
            having = others.get(name.tail, {})
            fewest = min((having.get(part, set()) for part in shown), key=len)
            ones = (every[number] for number in fewest)
            alike = [parts for parts in ones if parts != name.parts and _is_within(shown, parts)]
            more = needed[text] | (_branches([name.parts, *alike])[name.parts] if alike else set())
            if more == needed[text] or not name.fits(more) or name.cut(more) in cut.values():
                break
            needed[text], cut[text] = more, name.cut(more)


def _is_within(shown: Sequence[str], parts: Sequence[str]) -> bool:
    """Whether the parts have all that is shown, in this order."""
    rest = iter(parts)
    return all(part in rest for part in shown)


def _alike(cut: dict[str, str], names: dict[str, _Name]) -> list[list[str]]:
    """The cut texts that read alike, in groups."""
    groups: dict[str, list[str]] = {}
    for text in names:
        groups.setdefault(cut[text], []).append(text)
    return [group for group in groups.values() if len(group) > 1]


def _branches(names: Sequence[tuple[str, ...]]) -> dict[tuple[str, ...], set[int]]:
    """By name, in parts: the places of the parts at which it goes another way than others do that begin alike."""
    beginnings: list[dict[str, int]] = [{}]  # of each: by the next part, "" at the end, the beginning one part longer
    passed: dict[tuple[str, ...], list[int]] = {}
    for parts in dict.fromkeys(names):
        way, here = [], 0
        for part in (*parts, ""):
            way.append(here)
            here = beginnings[here].setdefault(part, len(beginnings))
            if here == len(beginnings):
                beginnings.append({})
        passed[parts] = way[:-1]
    return {
        parts: {place for place, here in enumerate(way) if len(beginnings[here]) > 1} for parts, way in passed.items()
    }


def _windows(group: Sequence[_Name], cut: dict[str, str]) -> dict[str, str]:
    """Of names whose parts that tell them apart have no room: each from where it differs from the others on."""
    ordered = sorted(group, key=lambda name: name.body)
    found = {}
    for number, name in enumerate(ordered):
        beside = [*ordered[max(number - 1, 0) : number], *ordered[number + 1 : number + 2]]
        first = max(len(commonprefix([name.body, other.body])) for other in beside)  # noqa: RUF071 - by characters
        room = name.room - 2 * len(name.ellipsis)
        if room < 1:
            return {one.text: cut[one.text] for one in group}
        begin = min(first, len(name.body) - room)
        rest = name.body[begin:]
        whole = len(rest) <= name.room - len(name.ellipsis)
        found[name.text] = name.framed(name.ellipsis + (rest if whole else rest[:room] + name.ellipsis))
    return found
