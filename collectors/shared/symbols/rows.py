"""The rows of an ELF symbol table, in bulk."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from collectors.shared.symbols.ranges import Addresses
from collectors.shared.symbols.table import Bytes, SymbolTable

SYMBOL: Final = np.dtype(
    [("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2"), ("value", "<u8"), ("size", "<u8")]
)
STT_FUNC, STT_GNU_IFUNC = 2, 10
STB_LOCAL: Final = 0
SHN_UNDEF, SHN_LORESERVE = 0, 0xFF00

Rows = npt.NDArray[np.void]
"""Of ``SYMBOL``."""


def functions(rows: Rows, section_ends: Addresses, names: Bytes, names_at: int) -> SymbolTable:
    """Those that the file defines, one an address. A function without a size, as assembly has them, reaches to the next
    one, or to the end of its section. ``names_at``: where in ``names`` the table's names begin."""
    kinds = rows["info"] & 15
    section = rows["section"]
    is_function = ((kinds == STT_FUNC) | (kinds == STT_GNU_IFUNC)) & (section != SHN_UNDEF) & (section < SHN_LORESERVE)
    rows = rows[is_function & (section < len(section_ends))]
    rows = _without_aliases(rows[np.argsort(rows["value"], kind="stable")], names, names_at)
    starts = rows["value"].astype(np.uint64)
    ends = starts + rows["size"]
    next_starts = np.append(starts[1:], np.uint64(2**64 - 1))
    to_next = np.minimum(next_starts, section_ends[rows["section"]])
    ends = np.where(rows["size"] == 0, to_next, ends)
    return SymbolTable(starts, ends, rows["name"].astype(np.int64) + names_at, names)


def _without_aliases(rows: Rows, names: Bytes, names_at: int) -> Rows:
    """Of the names of an address one that has a size, others can link to, and is the shortest. ``rows``: by value."""
    same = rows["value"][1:] == rows["value"][:-1]
    shared = np.append(same, False) | np.append(False, same)
    aliases = rows[shared]
    starts = (aliases["name"].astype(np.int64) + names_at).tolist()
    lengths = np.array([names.find(b"\0", start) - start for start in starts], dtype=np.int64)
    is_local = aliases["info"] >> 4 == STB_LOCAL
    aliases = aliases[np.lexsort((lengths, is_local, aliases["size"] == 0, aliases["value"]))]
    _, first = np.unique(aliases["value"], return_index=True)
    kept = np.concatenate([rows[~shared], aliases[first]])
    return kept[np.argsort(kept["value"], kind="stable")]
