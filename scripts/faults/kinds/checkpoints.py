"""Checkpoints: pickles by their grammar, in every wrapping that is read, and real ones with faults."""

from __future__ import annotations

import io
import json
import pickle
import struct
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, Final

import torch
from torch import nn

from scripts.faults.case import Case
from scripts.faults.kinds.pickles import program

IMPORTS: Final = "hwprof.cli.app,hwprof.workload.checkpoints,scripts.faults.actions,safetensors.torch,torch._utils"
LIMIT_BYTES: Final = 3 << 30

LEGACY_MAGIC: Final = 0x1950A86A20F9469CFC6C
LEGACY_PROTOCOL: Final = 1001


def shared(root: Path) -> list[bytes]:
    """Real checkpoints of the model that cases load into, as bytes."""
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
    found = []
    for content in (model.state_dict(), {"model": model, "epoch": 3}, {"ema": model.half(), "optimizer": None}):
        for zipped in (True, False):
            file = io.BytesIO()
            torch.save(content, file, _use_new_zipfile_serialization=zipped)
            found.append(file.getvalue())
    return found


def case(random: Random, folder: Path, real: list[bytes]) -> Case:
    """A file in place of weights."""
    what, data, suffix = random.choice(WRAPPINGS)(random, real)
    path = folder / f"weights{suffix}"
    path.write_bytes(data)
    return Case(what, (str(path),), call="weights", limit_bytes=LIMIT_BYTES, unchanged=(path,), quiet=True)


def _zip(random: Random, _: list[bytes]) -> tuple[str, bytes, str]:
    file = io.BytesIO()
    text, made = program(random)
    with zipfile.ZipFile(file, "w", random.choice((zipfile.ZIP_STORED, zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as z:
        z.writestr("archive/data.pkl", made)
        z.writestr("archive/version", b"3\n")
        z.writestr("archive/byteorder", random.choice((b"little", b"big", b"odd")))
        z.writestr("archive/data/0", random.randbytes(random.choice((0, 3, 64))))
        if random.random() < 0.1:
            z.writestr(random.choice(("archive/constants.pkl", "archive/code/x.py", "../../escaped", "/escaped")), made)
    return f"zip: {text}", file.getvalue(), ".pt"


def _legacy(random: Random, _: list[bytes]) -> tuple[str, bytes, str]:
    text, made = program(random)
    system = {
        "protocol_version": LEGACY_PROTOCOL,
        "little_endian": True,
        "type_sizes": {"short": 2, "int": 4, "long": 4},
    }
    head = b"".join(pickle.dumps(one, 2) for one in (LEGACY_MAGIC, LEGACY_PROTOCOL, system))
    keys = pickle.dumps(random.choice((["0"], [], ["0"] * 9, "0", None, 7)), 2)
    size = struct.pack("<q", random.choice((0, 4, -1, 1 << 40, 1 << 62)))
    return f"legacy: {text}", head + made + keys + size + random.randbytes(64), ".pt"


def _bare(random: Random, _: list[bytes]) -> tuple[str, bytes, str]:
    text, made = program(random)
    return f"bare: {text}", made, ".pt"


def _tar(random: Random, _: list[bytes]) -> tuple[str, bytes, str]:
    file = io.BytesIO()
    text, made = program(random)
    with tarfile.open(fileobj=file, mode="w") as archive:
        for name, content in (("storages", made), ("tensors", made), ("pickle", made), ("../escaped", b"x")):
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return f"tar: {text}", file.getvalue(), ".pt"


def _safetensors(random: Random, _: list[bytes]) -> tuple[str, bytes, str]:
    def number() -> Any:
        return random.choice((0, 1, 4, 16, -1, 1 << 20, 1 << 40, 1 << 63, 1.5, "4", None))

    tensors: dict[str, Any] = {
        random.choice(("0.weight", "0.bias", "1.running_mean", "\x1b[31m", "")): {
            "dtype": random.choice(("F32", "F16", "BF16", "I64", "BOOL", "F8_E4M3", "X", 3)),
            "shape": random.choice(([4, 4], [4], [], [number(), number()], [1 << 40, 1 << 40], "4x4")),
            "data_offsets": random.choice(([0, 64], [0, 16], [number(), number()], [64, 0], [])),
        }
        for _ in range(random.randrange(4))
    }
    header = json.dumps(random.choice((tensors, tensors, tensors, [tensors], {"__metadata__": tensors}))).encode()
    length = random.choice((len(header), len(header), len(header), 0, len(header) - 1, 1 << 40, 1 << 63))
    data = struct.pack("<Q", length) + header + random.randbytes(random.choice((0, 16, 64, 80)))
    return f"safetensors: {header!r:.80}, length {length}", data, ".safetensors"


def _broken(random: Random, real: list[bytes]) -> tuple[str, bytes, str]:
    number = random.randrange(len(real))
    data = bytearray(real[number])
    what = f"real {number}"
    for _ in range(random.choice((1, 1, 4, 30))):
        place = random.randrange(len(data))
        data[place] ^= 1 << random.randrange(8)
        what += f", byte {place}"
    if random.random() < 0.3:
        del data[random.randrange(len(data)) :]
        what += f", cut at {len(data)}"
    return what, bytes(data), random.choice((".pt", ".pt", ".safetensors", ".weights", ""))


WRAPPINGS: Final[tuple[Callable[[Random, list[bytes]], tuple[str, bytes, str]], ...]] = (
    _zip, _zip, _legacy, _bare, _tar, _safetensors, _broken, _broken,
)  # fmt: skip
