"""The kernel's PMUs as sysfs describes them, and perf's way of writing an event: ``cpu/event=0xc7,umask=0x80/``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from hwprof.errors import UsageError
from hwprof.hardware.cores import DEVICES, cpu_list

CONFIGS: Final = ("config", "config1", "config2")

_TERM = re.compile(r"^(?P<name>[A-Za-z_][A-Za-z0-9_.-]*)(?:=(?P<value>\S+))?$")


@dataclass(frozen=True)
class Code:
    """What perf_event_attr takes: the PMU's type and the three words that only its driver understands."""

    type: int
    config: int
    config1: int = 0
    config2: int = 0


class EncodingError(UsageError):
    """An event that this PMU's description has no words for."""


class Pmu:
    """One PMU's folder in sysfs."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.name = folder.name

    @cached_property
    def type(self) -> int | None:
        """The number that perf_event_open calls it by; None where it cannot be read."""
        text = self._read("type")
        return int(text) if text is not None else None

    @cached_property
    def cpus(self) -> tuple[int, ...]:
        """Core PMUs of hybrids: the processors whose events it counts."""
        return tuple(cpu_list(self._read("cpus") or ""))

    @cached_property
    def cpumask(self) -> tuple[int, ...]:
        """Uncore PMUs: the processors to open events on, one a socket; empty: it counts per thread."""
        return tuple(cpu_list(self._read("cpumask") or ""))

    @cached_property
    def formats(self) -> dict[str, str]:
        """Term -> the bits it goes to, ``config:0-7,32-35``."""
        return self._files("format")

    @cached_property
    def events(self) -> dict[str, str]:
        """The events that the driver names, as terms: ``mem-loads`` -> ``event=0xcd,umask=0x1,ldlat=3``."""
        files = self._files("events")
        return {name: text for name, text in files.items() if not name.endswith((".scale", ".unit", ".snapshot"))}

    def scale(self, event: str) -> float:
        """What one count of a named event is worth in its unit; 1 where the driver does not say."""
        return float(self._read(f"events/{event}.scale") or 1)

    def unit(self, event: str) -> str | None:
        """The unit of a named event times its scale; None where the driver does not say."""
        return self._read(f"events/{event}.unit")

    def gather(self, term: str, code: Code) -> int:
        """A term's value in a code: ``encode`` backwards. 0 for a term that the PMU does not have."""
        words = dict(zip(CONFIGS, (code.config, code.config1, code.config2), strict=True))
        word, bits = _bits(self.formats.get(term, "config:"))
        return sum((words[word] >> bit & 1) << position for position, bit in enumerate(bits))

    def encode(self, terms: str) -> Code:
        """``event=0xc7,umask=0x80`` as the driver wants it. Raises ``EncodingError`` for terms that it lacks."""
        if self.type is None:
            raise EncodingError(
                f"the PMU {self.name} has no type in sysfs", "mount /sys, or run outside of the sandbox"
            )
        words = dict.fromkeys(CONFIGS, 0)
        for term in filter(None, (part.strip() for part in terms.split(","))):
            self._apply(term, words, known=())
        return Code(self.type, *(words[name] for name in CONFIGS))

    def _apply(self, term: str, words: dict[str, int], known: tuple[str, ...]) -> None:
        match = _TERM.match(term)
        if match is None:
            raise EncodingError(
                f"{term!r} is no term of an event", "write it like perf does: cpu/event=0xc7,umask=0x80/"
            )
        name, text = match["name"], match["value"]
        if text is None and name in self.events and name not in known:
            for part in self.events[name].split(","):
                self._apply(part.strip(), words, (*known, name))
            return
        value = _number(term, text)
        if name in CONFIGS and name not in self.formats:
            words[name] |= value
        elif name in self.formats:
            _scatter(self.formats[name], value, words, term)
        else:
            choice = ", ".join([*self.formats, *self.events]) or "nothing"
            raise EncodingError(f"the PMU {self.name} has no term {name!r}", f"it has {choice}")

    def _files(self, folder: str) -> dict[str, str]:
        place = self._folder / folder
        if not place.is_dir():
            return {}
        return {file.name: text for file in sorted(place.iterdir()) if (text := self._read(f"{folder}/{file.name}"))}

    def _read(self, name: str) -> str | None:
        try:
            return (self._folder / name).read_text().strip()
        except OSError:
            return None


def find(root: Path, name: str) -> list[Pmu]:
    """The PMU of that name, else its instances: those called so with a number after it, ``uncore_imc_0`` (and not
    ``uncore_imc_free_running_0``, which is another PMU)."""
    folder = root / DEVICES
    if (folder / name).is_dir():
        return [Pmu(folder / name)]
    instance = re.compile(re.escape(name) + r"_[0-9a-f]*[0-9][0-9a-f]*")
    names = sorted(entry.name for entry in folder.iterdir()) if folder.is_dir() else []
    return [Pmu(folder / found) for found in names if instance.fullmatch(found)]


def _number(term: str, text: str | None) -> int:
    """The value of a term; one without is a switch that is on."""
    try:
        value = 1 if text is None else int(text, 0)
    except ValueError as error:
        raise EncodingError(f"{term!r} has no number", "write it like perf does: event=0xc7") from error
    if not 0 <= value < 1 << 64:
        raise EncodingError(f"the value of {term!r} does not fit into 64 bits")
    return value


def _scatter(place: str, value: int, words: dict[str, int], term: str) -> None:
    """Puts the value's bits where the format (``config:0-7,32-35``) says, lowest first."""
    word, bits = _bits(place)
    left = value
    for bit in bits:
        words[word] |= (left & 1) << bit
        left >>= 1
    if left:
        raise EncodingError(f"the value of {term!r} is too large for its field ({place})")


def _bits(place: str) -> tuple[str, list[int]]:
    """``config:0-7,32-35`` as the word and its bits, lowest first."""
    word, _, ranges = place.partition(":")
    return word, cpu_list(ranges)
