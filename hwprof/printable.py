"""Text from outside (names of files, models and layers, what libraries say) as a terminal may be given it."""

from __future__ import annotations

import re
from typing import Final
from unicodedata import category

LONGEST_LINE: Final = 500
"""Characters of a message; a library's may have megabytes."""

_OBEYED: Final = frozenset(("Cc", "Cf", "Zl", "Zp", "Cs"))
"""Unicode's categories of controls, of what turns or hides text, of ends of lines, and of halves of characters: JSON
lets them stand as they are, and a terminal obeys."""

_FOREIGN_BYTE: Final = re.compile("[\udc80-\udcff]")
"""What Python makes of a name's byte that is not UTF-8."""


def printable(text: str, kept: str = "") -> str:
    """The text with a question mark for each character that is not printed (but those in ``kept``): it moves no cursor,
    colours nothing, has no lines."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() or one in kept else "?" for one in text)


def one_line(text: str) -> str:
    """The text as a line of bounded length: without its middle where it is too long, for its end says what to do."""
    line = printable(" ".join(as_written(text).split()))
    if len(line) <= LONGEST_LINE:
        return line
    end = LONGEST_LINE // 3
    return f"{line[: LONGEST_LINE - end - 3]} … {line[-end:]}"


def as_written(name: str) -> str:
    """A name that is not UTF-8 with its bytes as ``\\xff``; any other as it is."""
    return _FOREIGN_BYTE.sub(lambda match: f"\\x{ord(match[0]) - 0xDC00:02x}", name)


def as_text(name: str) -> str:
    """A name that someone's code has made, as UTF-8 can hold it: halves of characters become ``\\ud800``."""
    return name.encode(errors="backslashreplace").decode()


def is_text(name: str) -> bool:
    """Whether a name of the system's is UTF-8; one that is not can be neither kept in a file nor printed."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def escaped_json(text: str) -> str:
    """JSON that means the same and holds no character that a terminal obeys, but the ends of its own lines."""
    obeyed = {ord(one): _in_json(one) for one in set(text) if one != "\n" and category(one) in _OBEYED}
    return text.translate(obeyed) if obeyed else text


def _in_json(character: str) -> str:
    """``\\u202e``; in two halves what lies beyond 16 bits."""
    halves = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{halves[at : at + 2].hex()}" for at in range(0, len(halves), 2))
