"""Pickles that are short and take for ever, or all memory, are refused before anything is built."""

from __future__ import annotations

import collections
import contextlib
import io
import pickle
import resource
import time
import zipfile
from pathlib import Path
from typing import Any, Final

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from hwprof.errors import HwprofError, UsageError
from hwprof.workload import pickle_scan, unpickle
from hwprof.workload.checkpoints import read_checkpoint
from hwprof.workload.pickle_scan import scan
from hwprof.workload.unpickle import Placeholder, state_of

LONG: Final = 30.0
"""Seconds of processor time, for six times; what these describe takes centuries, or all memory."""

MODULUS: Final = (1 << 61) - 1


def integers(numbers: list[int]) -> bytes:
    return b"".join(b"\x8a\x0a" + number.to_bytes(10, "little") for number in numbers)


def module(name: bytes) -> bytes:
    return b"c" + name + b"\n"


DOUBLED: Final = b")q\x01" + b"0h\x01h\x01\x86q\x01" * 60
COLLIDING: Final = b"".join(integers([k * MODULUS]) + b"K\x01" for k in range(1, 1200))
PAIRS: Final = b"".join(b"(" + integers([k * MODULUS]) + b"K\x01t" for k in range(1, 1200))

BOMBS: Final[dict[str, tuple[bytes, str]]] = {
    "a key of tuples in tuples": (b"}q\x00" + DOUBLED + b"K\x01s", "tuple in it has more than 10,000 parts"),
    "in a set": (b"\x8f(" + DOUBLED + b"\x90", "more than 10,000 parts"),
    "named from outside": (b"(X\x07\x00\x00\x00storage" + DOUBLED + b"tQ", "more than 10,000 parts"),
    "integers of one hash": (b"}(" + COLLIDING + b"u", "more than 1,000 keys"),
    "pairs with such": (
        b"ccollections\nOrderedDict\n((" + PAIRS + b"ltR",
        "more than 1,000 keys",
    ),
    "a list in a thousand sets": (
        b"(" + b"K\x01" * 100_000 + b"lq\x00(" + b"c__builtin__\nset\n(h\x00tR" * 1000 + b"l",
        "more than 2,000,000 objects in it are copies",
    ),
    "a state of a thousand objects": (
        b"}(" + b"".join(b"J" + k.to_bytes(4, "little") + b"N" for k in range(100_000)) + b"uq\x00("
        + b"cmodels\nNet\n)\x81h\x00b" * 1000 + b"l",
        "objects in it are copies",
    ),
    "a far place": (b"}r" + (2_000_000_000).to_bytes(4, "little"), "puts object 2000000000 into its memo"),
    "marks": (b"(" * 20_000, "more than 10,000 of its marks"),
    "an extension": (b"\x82\x01", "what no tensor needs"),
    "an array of any length": (b"\x96" + (1 << 40).to_bytes(8, "little"), "what no tensor needs"),
    "a set as a key": (b"}(K\x01\x91K\x01s", "a frozenset is a key"),
}  # fmt: skip


@pytest.mark.parametrize("bomb", list(BOMBS))
def test_it_is_refused_at_once(bomb: str, tmp_path: Path) -> None:
    opcodes, told = BOMBS[bomb]
    began_s, before = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(pickle.UnpicklingError, match=told):
        scan(io.BytesIO(b"\x80\x04" + opcodes + b"."))
    with pytest.raises(pickle.UnpicklingError, match=told):
        unpickle.load(io.BytesIO(b"\x80\x04" + opcodes + b"."))
    for legacy in (False, True):
        with pytest.raises(UsageError, match="is not a checkpoint that hwprof reads"):
            read_checkpoint(checkpoint(tmp_path / f"{legacy}.pt", b"\x80\x02" + opcodes + b".", legacy=legacy))
    assert time.process_time() - began_s < LONG
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200 << 10, "KiB"


def checkpoint(path: Path, pickled: bytes, *, legacy: bool) -> Path:
    """As ``torch.save`` writes it today, and wrote it until version 1.6."""
    if legacy:
        heads = (0x1950A86A20F9469CFC6C, 1001, {"protocol_version": 1001, "little_endian": True, "type_sizes": {}})
        path.write_bytes(b"".join(pickle.dumps(head, 2) for head in heads) + pickled + pickle.dumps([], 2))
        return path
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in (("data.pkl", pickled), ("version", b"3\n"), ("byteorder", b"little")):
            archive.writestr(f"archive/{name}", content)
    return path


def test_too_many_opcodes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pickle_scan, "MOST_STEPS", 1000)
    with pytest.raises(pickle.UnpicklingError, match="more than 1,000 opcodes"):
        scan(io.BytesIO(b"N" * 2000 + b"."))


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers(), inner) | st.tuples(inner, inner)
    | st.sets(st.text()).map(frozenset) | st.sets(st.integers()),
)  # fmt: skip


@given(values, st.integers(0, pickle.HIGHEST_PROTOCOL))
def test_what_python_pickles_passes_and_the_file_stands_where_it_stood(value: Any, protocol: int) -> None:
    file = io.BytesIO(b"before" + pickle.dumps(value, protocol) + b"behind")
    file.seek(6)
    scan(file)
    assert file.tell() == 6


@given(st.binary())
def test_any_bytes_are_scanned_or_raise(data: bytes) -> None:
    with contextlib.suppress(Exception):  # whatever its mistakes lead to
        scan(io.BytesIO(data))


def test_a_large_checkpoint_passes(tmp_path: Path) -> None:
    state = collections.OrderedDict(
        (f"layer.{number}.weight", torch.full((2,), float(number))) for number in range(3000)
    )
    for legacy in (False, True):
        torch.save({"model": state, "epoch": 3}, tmp_path / "a.pt", _use_new_zipfile_serialization=not legacy)
        read = read_checkpoint(tmp_path / "a.pt").state
        assert list(read) == list(state) and read["layer.7.weight"].tolist() == [7.0, 7.0]


def test_names_that_double_along_the_tree_are_refused() -> None:
    """A thousand modules could have a path of gigabytes."""
    name, child = "n" * (1 << 20), Placeholder()
    for _ in range(150):
        parent = Placeholder()
        parent.__dict__["_modules"] = {name: child, "b": child}
        child = parent
    with pytest.raises(unpickle.UnpicklingError, match="paths of its modules"):
        state_of(child)


def test_torch_has_its_own_unpickler_afterwards(tmp_path: Path) -> None:
    usual = torch._weights_only_unpickler.Unpickler
    with pytest.raises(HwprofError):
        read_checkpoint(checkpoint(tmp_path / "a.pt", b"\x80\x02" + b"}q\x00" + DOUBLED + b"K\x01s.", legacy=False))
    assert torch._weights_only_unpickler.Unpickler is usual
