"""What a hostile checkpoint could do with what it is given: nothing."""

from __future__ import annotations

import io
import pickle
import pickletools
import resource
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from hwprof.errors import HwprofError
from hwprof.workload import unpickle
from hwprof.workload.checkpoints import read_checkpoint

MAGIC: Final = 0x1950A86A20F9469CFC6C
PROTOCOL: Final = 1001
SYSTEM: Final = {"protocol_version": PROTOCOL, "little_endian": True, "type_sizes": {}}


def _global(module: str, name: str) -> bytes:
    return f"c{module}\n{name}\n".encode()


def _text(value: str) -> bytes:
    return b"X" + struct.pack("<I", len(value)) + value.encode()


def _legacy(body: bytes) -> bytes:
    """A checkpoint of the format before PyTorch 1.6, with ``body`` where the model is."""
    head = b"".join(pickle.dumps(value, protocol=2) for value in (MAGIC, PROTOCOL, SYSTEM))
    return head + b"\x80\x02" + body + b"." + pickle.dumps([], protocol=2)


def _build_and_check_source(module: str, name: str) -> bytes:
    """Gives a function or class another name, and has torch compare its source with one that the file brings."""
    state = b"N}" + _text("__name__") + _text("written") + b"s" + _text("dump_patches") + b"\x88s\x86b"
    changed = _global(module, name) + state + b"0"
    saved = _text("module") + _global(module, name) + _text("m.py") + _text("another source\n")
    return changed + b"(" + saved + b"tQ"


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("torch._utils", "_rebuild_parameter"),
        ("torch._utils", "_rebuild_tensor_v2"),
        ("torch", "FloatStorage"),
        ("torch", "UntypedStorage"),
        ("collections", "OrderedDict"),
        ("models.yolo", "Model"),
        ("torch.nn.modules.conv", "Conv2d"),
    ],
)
def test_a_legacy_checkpoint_writes_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "evil.pt"
    path.write_bytes(_legacy(_build_and_check_source(module, name)))
    before = vars(torch._utils._rebuild_parameter).copy()
    with pytest.raises(HwprofError, match="is not a checkpoint"):
        read_checkpoint(path)
    assert [file.name for file in tmp_path.iterdir()] == ["evil.pt"]
    assert torch._utils._rebuild_parameter.__name__ == "_rebuild_parameter"
    assert vars(torch._utils._rebuild_parameter) == before
    assert not hasattr(torch.FloatStorage, "dump_patches")


def test_torchs_own_check_writes_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same file, read without protection: the attack that the other tests refuse is real."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(torch._utils._rebuild_parameter, "__name__", "_rebuild_parameter")
    body = _build_and_check_source("torch._utils", "_rebuild_parameter")
    (tmp_path / "evil.pt").write_bytes(_legacy(body))
    try:
        with pytest.warns(torch.serialization.SourceChangeWarning):
            torch.load(tmp_path / "evil.pt", weights_only=False)
        assert (tmp_path / "written.patch").exists()
    finally:
        vars(torch._utils._rebuild_parameter).pop("dump_patches", None)


@pytest.mark.parametrize("identifier", ["module", "storage", "file", ""])
@pytest.mark.parametrize("encode", [str, str.encode])
def test_only_tensors_data_is_looked_up_outside_of_the_pickle(
    identifier: str, encode: Callable[[str], str | bytes]
) -> None:
    asked: list[Any] = []
    reader = unpickle.Unpickler(io.BytesIO())
    reader.persistent_load = asked.append  # type: ignore[method-assign]  # as torch does
    saved = (encode(identifier), nn.Conv2d, "m.py", "source")
    if identifier == "storage":
        reader.persistent_load(saved)
        assert asked == [saved]
    else:
        with pytest.raises(pickle.UnpicklingError):
            reader.persistent_load(saved)
        assert asked == []


def _handed_out() -> list[Any]:
    reader = unpickle.Unpickler(io.BytesIO())
    return [
        reader.find_class(*found) for found in [*unpickle._ALLOWED, ("torch", "FloatStorage"), ("models.yolo", "Model")]
    ]


@given(st.sampled_from(_handed_out()), st.sampled_from(["__name__", "dump_patches", "dtype", "_Allowed__call", "x"]))
def test_nothing_that_a_file_is_given_has_an_attribute_to_set(given_object: Any, name: str) -> None:
    with pytest.raises((pickle.UnpicklingError, AttributeError, TypeError)):
        setattr(given_object, name, 1)
    if not isinstance(given_object, type):
        with pytest.raises(pickle.UnpicklingError):
            given_object.__setstate__({name: 1})


def test_a_scripted_model_is_not_run(tmp_path: Path) -> None:
    """TorchScript runs code as it is loaded."""
    path = tmp_path / "scripted.pt"
    torch.jit.save(torch.jit.script(nn.Linear(2, 2)), path)
    with pytest.raises(HwprofError, match="is not a checkpoint"):
        read_checkpoint(path)


def test_the_made_up_pickle_is_one() -> None:
    pickletools.dis(b"\x80\x02" + _build_and_check_source("torch._utils", "_rebuild_parameter") + b".", io.StringIO())


def test_modules_that_hold_themselves_end() -> None:
    module = unpickle.Placeholder()
    module.__dict__["_modules"] = {"a": module, "b": module}
    with pytest.raises(unpickle.UnpicklingError, match="without end"):
        unpickle.state_of(module)


@pytest.mark.parametrize("place", [2_000_000_000, 400])
def test_a_memo_with_a_far_place_takes_no_memory(place: int) -> None:
    """``LONG_BINPUT``: its memo would be an array with room for so many."""
    bomb = io.BytesIO(b"\x80\x02}r" + place.to_bytes(4, "little") + b".")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(unpickle.UnpicklingError, match=f"puts object {place}"):
        unpickle.load(bomb)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1 << 16, "KiB"


def test_several_pickles_in_one_file_are_read_one_after_the_other() -> None:
    """As a checkpoint of torch's older form has them."""
    file = io.BytesIO(b"".join(pickle.dumps(what, 2) for what in ([1, 2], {"a": [3]}, "b")) + b"data")
    assert [unpickle.load(file) for _ in range(3)] == [[1, 2], {"a": [3]}, "b"]
    assert file.read() == b"data"
