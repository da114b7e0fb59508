"""What --source names beside pictures: videos that are none, are cut, lie or name other files; datasets' YAML."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Final

from scripts.faults.case import Case
from scripts.faults.kinds.sources import IMPORTS as IMPORTS

LIMIT_BYTES: Final = 3 << 29

CODECS: Final = {".mp4": "mp4v", ".avi": "MJPG", ".mkv": "FFV1", ".webm": "VP80", ".mpg": "MPG1"}
NAMES: Final = ("a", "a b", "%02d", "concat:a|b", "-", "a\nb", "\x1b[31m", "x" * 240)

TEXTS: Final = (
    "ffconcat version 1.0\nfile real.mp4\nfile /dev/zero\n",
    "#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXTINF:9,\nhttp://127.0.0.1:9/a.ts\n#EXT-X-ENDLIST\n",
    "v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nt=0 0\nm=video 5004 RTP/AVP 96\n",
    "<?xml version='1.0'?><MPD xmlns='urn:mpeg:dash:schema:mpd:2011'/>",
    "",
)
"""Play lists, which name files and addresses."""

DATASET: Final = (
    "path: .\ntrain: [photos]\nval: list.txt\ntest:\nnames:\n  0: cat\n  1: dog\ndownload: |\n  os.system('true')\n"
)
DATASETS: Final = (
    DATASET,
    "a: &a [x, x]\nb: &b [*a, *a]\nval: *b\n",
    "a: &a {x: 1}\nb: &b\n  <<: [*a, *a]\nval:\n  <<: [*b, *b]\n",
    "val: !!python/object/apply:os.system ['true']\n",
    "val: /dev/zero\nnames: 2020-99-99\n",
    f"val: {'[' * 3000}",
    f"{'9' * 9000}: val\nval: [/etc/passwd, /proc/self/mem]\n",
)


def shared(root: Path) -> list[tuple[str, bytes]]:
    """Videos by suffix, as files have them."""
    import cv2
    import numpy as np

    root.mkdir(parents=True)
    random, found = np.random.default_rng(0), []
    for suffix, codec in CODECS.items():
        file = root / f"real{suffix}"
        writer = cv2.VideoWriter(str(file), cv2.CAP_FFMPEG, cv2.VideoWriter.fourcc(*codec), 25.0, (60, 40))
        for _ in range(12):
            writer.write(random.integers(0, 255, (40, 60, 3), dtype=np.uint8))
        writer.release()
        found.append((suffix, file.read_bytes()))
    return found


def case(random: Random, folder: Path, real: list[tuple[str, bytes]]) -> Case:
    """One file, and its name."""
    (folder / "photos").mkdir()
    (folder / "real.mp4").write_bytes(dict(real)[".mp4"])
    done, file = random.choice(FAULTS)(random, folder, real)
    named = str(file.relative_to(folder))
    return Case(f"{done}; --source {named!r:.80}", (named,), call="source", limit_bytes=LIMIT_BYTES, quiet=True)


def _broken(random: Random, folder: Path, real: list[tuple[str, bytes]]) -> tuple[str, Path]:
    suffix, content = random.choice(real)
    data = bytearray(content)
    begin = random.choice((len(data), 400))  # headers are short
    for _ in range(random.choice((0, 1, 4, 40))):
        data[random.randrange(begin)] = random.randrange(256)
    if random.random() < 0.3:
        del data[random.randrange(len(data)) :]
    file = folder / f"{random.choice(NAMES)}{random.choice((suffix, suffix, *CODECS))}"
    file.write_bytes(data)
    return f"a broken {suffix}", file


def _play_list(random: Random, folder: Path, _: list[tuple[str, bytes]]) -> tuple[str, Path]:
    text, file = random.choice(TEXTS), folder / f"list{random.choice(tuple(CODECS))}"
    file.write_text(text)
    return f"{text[:20]!r} as a video", file


def _no_file(random: Random, folder: Path, _: list[tuple[str, bytes]]) -> tuple[str, Path]:
    file, kind = (
        folder / f"a{random.choice((*CODECS, '.yaml'))}",
        random.choice(("folder", "pipe", "/dev/zero", "gone")),
    )
    if kind == "folder":
        file.mkdir()
    elif kind == "pipe":
        os.mkfifo(file)
    else:
        file.symlink_to(kind)
    return f"{kind} as a file", file


def _dataset(random: Random, folder: Path, _: list[tuple[str, bytes]]) -> tuple[str, Path]:
    text = list(random.choice((DATASET, *DATASETS)))
    for _number in range(random.choice((0, 1, 3, 30))):
        text[random.randrange(len(text))] = random.choice("[]{}&*!|>'\"%@`:,-?# \n\tx0\x85\u202e\ud800")
    lines = random.choice(
        ("photos/a.jpg\n", "/dev/zero.jpg\n", "\0.jpg\n", "../" * 900 + "a.jpg\n", "x" * 70_000 + ".jpg")
    )
    (folder / "list.txt").write_text(lines)
    file = folder / f"data.yaml{random.choice(('', '', ':val', ':nosuch'))}"
    plain = folder / "data.yaml"
    plain.write_bytes("".join(text).encode("utf-8", "surrogatepass"))
    return f"a dataset {''.join(text)[:30]!r}", file


FAULTS: Final[tuple[Callable[[Random, Path, list[tuple[str, bytes]]], tuple[str, Path]], ...]] = (
    _broken, _broken, _broken, _play_list, _no_file, _dataset, _dataset,
)  # fmt: skip
