#!/usr/bin/env python3
"""Packs busybox, /init and kernel modules into an initramfs, with what the modules depend on, in loading order.

Usage: mkinitramfs.py KERNELDIR BUSYBOX INIT OUT MODULE...
"""

from __future__ import annotations

import gzip
import lzma
import re
import sys
from pathlib import Path

DIRECTORY, EXECUTABLE, REGULAR, CHARACTER_DEVICE = 0o040755, 0o100755, 0o100644, 0o020600
DEPENDS = re.compile(rb"\0depends=([^\0]*)\0")


class Archive:
    """A cpio archive in the "newc" format that the kernel unpacks."""

    def __init__(self) -> None:
        self.data = bytearray()
        self._inode = 0

    def add(self, name: str, mode: int, content: bytes = b"", device: tuple[int, int] = (0, 0)) -> None:
        """Appends an entry: header of 8-digit hexadecimal fields, name, content, each padded to four bytes."""
        self._inode += 1
        raw = name.encode() + b"\0"
        # inode, mode, uid, gid, links, mtime, size, device (2), device of a node (2), name's length, checksum
        fields = (self._inode, mode, 0, 0, 1, 0, len(content), 0, 0, *device, len(raw), 0)
        self.data += b"070701" + b"".join(b"%08X" % field for field in fields) + raw
        self._pad()
        self.data += content
        self._pad()

    def _pad(self) -> None:
        self.data += b"\0" * (-len(self.data) % 4)


class Modules:
    """The modules below a kernel's folder, decompressed as they are asked for."""

    def __init__(self, folder: Path) -> None:
        self._files = {_module_name(file): file for file in folder.rglob("*.ko*")}
        self.images: dict[str, bytes] = {}  # in loading order

    def load(self, name: str) -> None:
        """Adds a module after those it depends on; one that has no file is built into the kernel."""
        name = name.replace("-", "_")
        if name in self.images or name not in self._files:
            return
        image = _decompressed(self._files[name])
        found = DEPENDS.search(image)
        for needed in filter(None, found[1].decode().split(",") if found else []):
            self.load(needed)
        self.images[name] = image


def _module_name(file: Path) -> str:
    return file.name.split(".ko")[0].replace("-", "_")


def _decompressed(file: Path) -> bytes:
    data = file.read_bytes()
    if file.suffix == ".xz":
        return lzma.decompress(data)
    return gzip.decompress(data) if file.suffix == ".gz" else data


def main(kernel: str, busybox: str, init: str, out: str, *wanted: str) -> None:
    modules = Modules(Path(kernel))
    for name in wanted:
        modules.load(name)
    archive = Archive()
    for folder in ("bin", "dev", "proc", "sys", "newroot", "modules"):
        archive.add(folder, DIRECTORY)
    archive.add("dev/console", CHARACTER_DEVICE, device=(5, 1))
    archive.add("bin/busybox", EXECUTABLE, Path(busybox).read_bytes())
    archive.add("init", EXECUTABLE, Path(init).read_bytes())
    for name, image in modules.images.items():
        archive.add(f"modules/{name}.ko", REGULAR, image)
    archive.add("modules/order", REGULAR, "".join(f"{name}.ko\n" for name in modules.images).encode())
    archive.add("TRAILER!!!", 0)
    Path(out).write_bytes(archive.data)
    print("initramfs:", len(archive.data), "bytes, modules:", " ".join(modules.images) or "none")


if __name__ == "__main__":
    main(*sys.argv[1:])
