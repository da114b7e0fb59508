"""Symbol tables kept between runs, one file for each build id, in the user's cache folder.

Whatever is wrong with the folder or a file of it costs time only: the table is read again from where it came.
"""

from __future__ import annotations

import os
import tempfile
import zipfile
from pathlib import Path
from typing import Final

import numpy as np

from collectors.shared.symbols.table import Bytes, SymbolTable

VERSION: Final = 1
"""Of what is in the files; another version has another folder."""


def folder() -> Path:
    """``$XDG_CACHE_HOME/hwprof/symbols/vN``, by default below ``~/.cache``."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    root = Path(base) if base.startswith("/") else Path("~/.cache").expanduser()
    return root / "hwprof" / "symbols" / f"v{VERSION}"


def place_of(build_id: str, size_bytes: int) -> Path:
    """A stripped file has its build id still: the size distinguishes it."""
    return folder() / f"{build_id}-{size_bytes:x}.npz"


def load(place: Path, data: Bytes) -> SymbolTable | None:
    """The table kept there, of the file whose bytes are ``data``; None if there is none, or it is broken."""
    try:
        with np.load(place, allow_pickle=False) as kept:
            starts, ends, offsets, names = (kept[key] for key in ("starts", "ends", "name_offsets", "names"))
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None
    in_file = not names.size
    blob: Bytes = data if in_file else names.tobytes()
    whole = len(starts) == len(ends) == len(offsets) and (
        not len(offsets) or 0 <= offsets.min() <= offsets.max() < len(blob)
    )
    return SymbolTable(starts, ends, offsets, blob) if whole else None


def keep(place: Path, table: SymbolTable, data: Bytes) -> None:
    """Writes the table there, as a whole or not at all. Names that stand in the file itself stay there."""
    names = b"" if table.names is data else bytes(table.names)
    temporary = None
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=place.parent, suffix=".part", delete=False) as file:
            temporary = Path(file.name)
            np.savez(
                file,
                starts=table.starts,
                ends=table.ends,
                name_offsets=table.name_offsets,
                names=np.frombuffer(names, dtype=np.uint8),
            )
        temporary.replace(place)
    except OSError:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
