"""Darknet's own model files (.cfg): sections of ``key=value`` lines, read as data."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from hwprof.errors import HwprofError, UsageError
from hwprof.printable import printable
from hwprof.run.regular_files import NotRegularError, read_regular

LARGEST_BYTES: Final = 4 << 20
MOST_SECTIONS: Final = 5000

NETWORK: Final = ("net", "network")
"""The names of the first section."""

OTHER: Final = "a .cfg as Darknet has it: yolov3.cfg, yolov4.cfg, yolov4-tiny.cfg"

_SECTION: Final = re.compile(r"\[\s*([\w-]+)\s*\]")
_WHOLE: Final = re.compile(r"[+-]?\d{1,9}", re.ASCII)
_REAL: Final = re.compile(r"[+-]?(\d{1,12}\.?\d{0,18}|\.\d{1,18})", re.ASCII)

Number = TypeVar("Number", int, float)


@dataclass(frozen=True)
class Section:
    """One layer, or the network itself; ``number``: that of the layer, -1 of the network; ``line``: where it begins."""

    file: Path
    line: int
    number: int
    kind: str
    values: dict[str, str]

    def error(self, what: str, remedy: str = OTHER) -> UsageError:
        """To be raised, with where it is."""
        where = f"layer {self.number} [{self.kind}]" if self.number >= 0 else f"[{self.kind}]"
        return UsageError(f"{self.file}, line {self.line}, {where}: {printable(what)}", remedy)

    def text(self, key: str, otherwise: str) -> str:
        """A word."""
        return self.values.get(key, otherwise)

    def whole(self, key: str, otherwise: int | None = None, *, least: int = 0, most: int = 1 << 16) -> int:
        """A whole number in these bounds; None: it must be there."""
        if key not in self.values and otherwise is not None:
            return otherwise
        found = self._number(key, self.values.get(key, ""), _WHOLE, int)
        if not least <= found <= most:
            raise self.error(f"{key}={found} is not in {least} to {most}")
        return found

    def wholes(self, key: str) -> list[int]:
        """Whole numbers between commas."""
        return [self._number(key, one, _WHOLE, int) for one in self._listed(key)]

    def real(self, key: str, otherwise: float) -> float:
        """A number."""
        return self._number(key, self.values[key], _REAL, float) if key in self.values else otherwise

    def reals(self, key: str) -> list[float]:
        """Numbers between commas."""
        return [self._number(key, one, _REAL, float) for one in self._listed(key)]

    def _listed(self, key: str) -> list[str]:
        if key not in self.values:
            raise self.error(f"it has no {key}")
        return [one.strip() for one in self.values[key].split(",") if one.strip()]

    def _number(self, key: str, text: str, wanted: re.Pattern[str], kind: Callable[[str], Number]) -> Number:
        if not wanted.fullmatch(text):
            raise self.error(f"{key}={text[:40]} is no number")
        return kind(text)


def read_cfg(file: Path) -> tuple[Section, list[Section]]:
    """The network's section, and its layers'. Raises ``UsageError`` where it is no such file, and ``HwprofError`` where
    it cannot be read."""
    try:
        text = read_regular(file, LARGEST_BYTES).decode("utf-8-sig", errors="replace")
    except (FileNotFoundError, NotADirectoryError) as error:
        raise UsageError(f"there is no model file {file}", "its path from this folder, or the whole one") from error
    except (IsADirectoryError, NotRegularError) as error:
        raise UsageError(f"{file} is no model file: {error.strerror}", OTHER) from error
    except OSError as error:
        raise HwprofError(f"cannot read {file}: {error.strerror or error}", OTHER) from error
    sections: list[Section] = []
    for number, line in enumerate(text.splitlines(), 1):
        line = line.split("#")[0].split(";")[0].strip()
        if not line:
            continue
        if found := _SECTION.fullmatch(line):
            sections.append(Section(file, number, len(sections) - 1, found[1], {}))
            if len(sections) > MOST_SECTIONS:
                raise UsageError(f"{file} has more than {MOST_SECTIONS} sections", OTHER)
            continue
        key, sign, value = line.partition("=")
        if not sections or not sign:
            raise UsageError(f"{file} is no model file of Darknet: line {number}, {printable(line[:60])}", OTHER)
        sections[-1].values[key.strip()] = value.strip()
    if not sections or sections[0].kind not in NETWORK or len(sections) < 2:
        raise UsageError(f"{file} is no model file of Darknet: it begins with no [net]", OTHER)
    return sections[0], sections[1:]
