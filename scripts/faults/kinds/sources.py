"""What --source names: pictures that are none, are cut or huge, that block who reads them; odd names and patterns."""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Final

from scripts.faults.case import Case
from scripts.faults.kinds.odd_values import TEXTS

IMPORTS: Final = (
    "hwprof.cli.app,hwprof.workload.sources.finding,hwprof.workload.libraries:require_cv2,yaml,scripts.faults.actions"
)
LIMIT_BYTES: Final = 3 << 29
"""A picture of as many pixels as are allowed has half of it."""

SUFFIXES: Final = (".bmp", ".jpeg", ".png", ".tif", ".webp")
NAMES: Final = ("a", "a b", "[1]", "*", "?", "a\nb", "\x1b[31m", "\u202eb", "-", "--help", "~", "x" * 240)


def shared(root: Path) -> list[tuple[str, bytes]]:
    """Pictures by suffix, as files have them."""
    import cv2
    import numpy as np

    image = np.random.default_rng(0).integers(0, 255, (40, 60, 3), dtype=np.uint8)
    return [(suffix, cv2.imencode(suffix, image)[1].tobytes()) for suffix in SUFFIXES]


def case(random: Random, folder: Path, real: list[tuple[str, bytes]]) -> Case:
    """A folder of some pictures, and a way to name them."""
    place = folder / "photos"
    place.mkdir()
    done = [random.choice(FAULTS)(random, place, real) for _ in range(random.choice((1, 1, 2, 4)))]
    inside = sorted(place.iterdir())
    ways = ["photos", "photos/*", "**/*", "photos/[", *TEXTS, *(str(one.relative_to(folder)) for one in inside)]
    source = random.choice(ways[:2] + ways[-len(inside) :]) if inside and random.random() < 0.8 else random.choice(ways)
    kept = [one for one in inside if one.is_file() and not one.is_symlink()]
    return Case(
        f"{'; '.join(done)}; --source {source!r:.80}",
        (source,),
        call="source",
        limit_bytes=LIMIT_BYTES,
        unchanged=kept,
        quiet=True,
    )


def _file(random: Random, place: Path, suffix: str) -> Path:
    """One that is not there yet."""
    name = random.choice(NAMES)
    several = (place / f"{name}{number or ''}{suffix}" for number in range(9))
    return next(file for file in several if not file.exists() and not file.is_symlink())


def _broken(random: Random, place: Path, real: list[tuple[str, bytes]]) -> str:
    suffix, content = random.choice(real)
    data = bytearray(content)
    for _ in range(random.choice((0, 1, 4, 40))):
        data[random.randrange(len(data))] = random.randrange(256)
    if random.random() < 0.3:
        del data[random.randrange(len(data)) :]
    file = _file(random, place, random.choice((suffix, *SUFFIXES)))
    file.write_bytes(data)
    return f"a broken {suffix} as {file.name!r}"


def _huge(random: Random, place: Path, _: list[tuple[str, bytes]]) -> str:
    """A PNG of which the head says that it is huge, and whose rows are all alike: some kilobytes."""
    width, height = (random.choice((1, 20_000, 65_000, 1 << 20, (1 << 31) - 1)) for _ in range(2))
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    rows = zlib.compress(bytes(min(1 << 24, 3 * width + 1)) * random.choice((1, 4)), 9)
    file = _file(random, place, ".png")
    file.write_bytes(
        b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(*one) for one in ((b"IHDR", head), (b"IDAT", rows), (b"IEND", b"")))
    )
    return f"{width}x{height} as {file.name!r}"


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def _no_file(random: Random, place: Path, _: list[tuple[str, bytes]]) -> str:
    file = _file(random, place, random.choice(SUFFIXES))
    kind = random.choice(("folder", "pipe", "/dev/zero", "/nonexistent", "itself", "/etc/passwd", "empty"))
    if kind == "folder":
        file.mkdir()
    elif kind == "pipe":
        os.mkfifo(file)
    elif kind == "empty":
        file.write_bytes(b"")
    else:
        file.symlink_to(file.name if kind == "itself" else kind)
    return f"{file.name!r} is {kind}"


def _not_utf8(random: Random, place: Path, real: list[tuple[str, bytes]]) -> str:
    suffix, content = random.choice(real)
    (place / os.fsdecode(b"caf\xe9" + suffix.encode())).write_bytes(content)
    return "a name in Latin-1"


FAULTS: Final[tuple[Callable[[Random, Path, list[tuple[str, bytes]]], str], ...]] = (
    _broken, _broken, _broken, _huge, _no_file, _not_utf8,
)  # fmt: skip
