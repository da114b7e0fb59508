from __future__ import annotations

import errno
import os
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import nn

from hwprof.errors import HwprofError, UsageError
from hwprof.workload.checkpoints import ZIP, load_weights, read_checkpoint
from tests.support.requirements import require_module


def _net() -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(3, 4, 3, bias=False), nn.BatchNorm2d(4), nn.Sequential(nn.Conv2d(4, 2, 1)))


def _filled(seed: int = 7) -> nn.Sequential:
    torch.manual_seed(seed)
    net = _net()
    norm = net[1]
    assert isinstance(norm, nn.BatchNorm2d) and norm.running_mean is not None
    norm.running_mean.normal_()
    return net


def _same(first: nn.Module, second: nn.Module) -> bool:
    mine, other = first.state_dict(), second.state_dict()
    return mine.keys() == other.keys() and all(torch.equal(mine[key], other[key]) for key in mine)


@pytest.mark.parametrize(
    "wrapping", ["plain", "state_dict", "model_state_dict", "model", "data-parallel", "old format"]
)
def test_loads_state_dicts_however_they_are_wrapped(tmp_path: Path, wrapping: str) -> None:
    source, target, path = _filled(), _net(), tmp_path / "weights.pt"
    content: Any = source.state_dict()
    if wrapping == "data-parallel":
        content = {f"module.{key}": value for key, value in content.items()}
    elif wrapping not in ("plain", "old format"):
        content = {wrapping: content, "epoch": 3, "optimizer": {"lr": 0.1}}
    torch.save(content, path, _use_new_zipfile_serialization=wrapping != "old format")
    assert not _same(source, target)
    load_weights(target, path)
    assert _same(source, target)


def test_half_precision_becomes_single(tmp_path: Path) -> None:
    half, model = _filled().half(), _net()
    torch.save(half.state_dict(), tmp_path / "half.pt")
    load_weights(model, tmp_path / "half.pt")
    assert {value.dtype for value in model.state_dict().values()} == {torch.float32, torch.int64}
    assert _same(model, half.float())


@pytest.fixture
def foreign(tmp_path: Path) -> Iterator[type[nn.Module]]:
    """A class of a package that is gone when the checkpoint is read, like YOLOv7's ``models.yolo.Model``."""
    package, module = ModuleType("gone_models"), ModuleType("gone_models.yolo")

    def build(self: Any) -> None:
        nn.Module.__init__(self)
        self.model = _filled()
        self.register_buffer("scratch", torch.ones(3), persistent=False)
        self.hyper = Unheard()
        self.stride = torch.tensor([8.0])

    class Unheard(dict[str, int]):
        pass

    model = type("Model", (nn.Module,), {"__init__": build, "__module__": "gone_models.yolo"})
    Unheard.__module__, Unheard.__qualname__ = "gone_models.yolo", "Unheard"
    for name, value in (("Model", model), ("Unheard", Unheard)):
        setattr(module, name, value)
    sys.modules.update({"gone_models": package, "gone_models.yolo": module})
    yield model
    for name in ("gone_models", "gone_models.yolo"):
        sys.modules.pop(name, None)


def _forget() -> None:
    for name in ("gone_models", "gone_models.yolo"):
        del sys.modules[name]


@pytest.mark.parametrize("zipped", [True, False])
def test_reads_a_pickled_model_whose_classes_are_gone(tmp_path: Path, foreign: type[nn.Module], zipped: bool) -> None:
    source, path = foreign(), tmp_path / "yolov7.pt"
    torch.save(
        {"epoch": -1, "ema": None, "model": source, "training_results": None},
        path,
        _use_new_zipfile_serialization=zipped,
    )
    _forget()
    state = read_checkpoint(path).state
    expected = source.state_dict()
    assert state.keys() == expected.keys() and "scratch" not in state
    assert all(torch.equal(state[key], expected[key]) for key in expected)


def test_the_averaged_model_goes_before_the_last_one(tmp_path: Path, foreign: type[nn.Module]) -> None:
    averaged, last = foreign(), foreign()
    torch.nn.init.constant_(averaged.get_parameter("model.0.weight"), 5.0)
    torch.save({"model": last, "ema": averaged}, tmp_path / "both.pt")
    _forget()
    assert set(read_checkpoint(tmp_path / "both.pt").state["model.0.weight"].flatten().tolist()) == {5.0}


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (["cat", "dog"], {0: "cat", 1: "dog"}),
        ({0: "cat", 1: "d\x1b[2Jog"}, {0: "cat", 1: "d?[2Jog"}),
        ({0: "0", 1: "1"}, {}), ({0: "0", 1: "dog"}, {0: "0", 1: "dog"}),
        ([b"cat"], {}), ({"0": "cat"}, {}), ({True: "cat"}, {}), (["c" * 1000], {}), ("cat", {}), (None, {}), (7, {}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("inside", [True, False])
def test_class_names_are_the_file_s(
    tmp_path: Path, foreign: type[nn.Module], inside: bool, names: Any, found: dict[int, str]
) -> None:
    """In the model, as yolov5 and yolov7 keep them, or beside it; what are none are not taken for any."""
    model = foreign()
    if inside:
        model.names = names
    torch.save({"ema": None, "model": model} | ({} if inside else {"names": names}), tmp_path / "named.pt")
    _forget()
    assert read_checkpoint(tmp_path / "named.pt").names == found


class _Malicious:
    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.target),)


@pytest.mark.parametrize("zipped", [True, False])
def test_runs_no_code_from_a_checkpoint(tmp_path: Path, zipped: bool) -> None:
    target, path, expected = tmp_path / "pwned", tmp_path / "evil.pt", _filled().state_dict()
    torch.save({"evil": _Malicious(target), "model": expected}, path, _use_new_zipfile_serialization=zipped)
    assert read_checkpoint(path).state.keys() == expected.keys()
    assert not target.exists()
    torch.load(path, weights_only=False)  # the same file does run it, when it is let
    assert target.exists()


def test_old_checkpoints_lack_batch_counters(tmp_path: Path) -> None:
    state = {key: value for key, value in _filled().state_dict().items() if not key.endswith("num_batches_tracked")}
    torch.save(state, tmp_path / "old.pt")
    load_weights(_net(), tmp_path / "old.pt")


def test_a_misfit_is_told_in_one_line_with_counts_and_examples(tmp_path: Path) -> None:
    state = _filled().state_dict()
    del state["2.0.bias"]
    state["0.weight"] = torch.zeros(8, 3, 3, 3)
    for number in range(5):
        state[f"extra.{number}"] = torch.zeros(1)
    torch.save(state, tmp_path / "other.pt")
    with pytest.raises(UsageError) as caught:
        load_weights(_net(), tmp_path / "other.pt")
    message = str(caught.value)
    assert "1 missing (2.0.bias)" in message
    assert "5 unexpected (extra.0, extra.1, extra.2, …)" in message
    assert "1 of another shape (0.weight)" in message
    assert "\n" not in message


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"not a checkpoint",
        b"epoch 3\n" * 100,
        b"\x80\x02.",
        b"a",
        b"[" * 5000,
        b"(" * 100_000,
    ],
)
def test_a_broken_file_is_told_in_one_line(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "broken.pt"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=r"broken\.pt is not a checkpoint") as caught:
        load_weights(_net(), path)
    assert "\n" not in str(caught.value)
    assert "torch.save" in (caught.value.remedy or "")


def test_a_file_without_weights(tmp_path: Path) -> None:
    torch.save({"epoch": 3, "model": "none"}, tmp_path / "empty.pt")
    with pytest.raises(UsageError, match="holds no weights"):
        load_weights(_net(), tmp_path / "empty.pt")


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no weights file"):
        load_weights(_net(), tmp_path / "nowhere.pt")


def test_links_that_lead_to_each_other_are_told_as_that(tmp_path: Path) -> None:
    (tmp_path / "one.pt").symlink_to("other.pt")
    (tmp_path / "other.pt").symlink_to("one.pt")
    with pytest.raises(HwprofError, match=r"cannot read .*one.pt: Too many levels of symbolic links"):
        load_weights(_net(), tmp_path / "one.pt")


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_what_is_no_regular_file_is_not_waited_for(make: Callable[[Path], None], tmp_path: Path) -> None:
    make(tmp_path / "weights.pt")
    with pytest.raises(UsageError, match="is not a regular file"):
        load_weights(_net(), tmp_path / "weights.pt")


def test_safetensors_without_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "w.safetensors").write_bytes(b"")
    monkeypatch.setitem(sys.modules, "safetensors", None)
    with pytest.raises(HwprofError, match="pip install safetensors"):
        load_weights(_net(), tmp_path / "w.safetensors")


def test_safetensors_are_read_with_the_package(tmp_path: Path) -> None:
    safetensors = require_module("safetensors.torch")
    source, target, path = _filled(), _net(), tmp_path / "w.safetensors"
    safetensors.save_file(source.state_dict(), path)
    load_weights(target, path)
    assert _same(source, target)


class _Head(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.m = nn.ModuleList(nn.Conv2d(channels, 6, 1) for channels in (4, 8))


class _TrainingHead(_Head):
    """YOLOv7's head as it trains: knowledge added before and multiplied after the convolution."""

    def __init__(self) -> None:
        super().__init__()
        self.ia = nn.ModuleList(_Implicit(channels, 0.0) for channels in (4, 8))
        self.im = nn.ModuleList(_Implicit(6, 1.0) for _ in range(2))


class _Implicit(nn.Module):
    def __init__(self, channels: int, mean: float) -> None:
        super().__init__()
        self.implicit = nn.Parameter(torch.randn(1, channels, 1, 1) * 0.5 + mean)


def test_folds_the_implicit_layers_of_a_training_checkpoint(tmp_path: Path) -> None:
    torch.manual_seed(0)
    training, head = nn.Sequential(_TrainingHead()), nn.Sequential(_Head())
    torch.save(training.state_dict(), tmp_path / "training.pt")
    load_weights(head, tmp_path / "training.pt")
    original, folded = training[0], head[0]
    assert isinstance(original, _TrainingHead) and isinstance(folded, _Head)
    for level, channels in enumerate((4, 8)):
        x = torch.randn(2, channels, 3, 3)
        added = original.get_parameter(f"ia.{level}.implicit")
        factor = original.get_parameter(f"im.{level}.implicit")
        torch.testing.assert_close(folded.m[level](x), factor * original.m[level](x + added))


class _Numbered(nn.Module):
    """Modules by number, as YOLO has them."""

    def __init__(self, *modules: nn.Module) -> None:
        super().__init__()
        self.model = nn.Sequential(*modules)


class _TwoHeads(_TrainingHead):
    """That of the P6 models."""

    def __init__(self) -> None:
        super().__init__()
        self.m2 = nn.ModuleList(nn.Conv2d(channels, 6, 1) for channels in (5, 9))


def test_of_a_model_that_was_trained_with_two_heads_the_deployed_one_is_loaded(tmp_path: Path) -> None:
    torch.manual_seed(0)
    training = _Numbered(nn.Conv2d(3, 4, 1), nn.Conv2d(3, 5, 1), nn.Conv2d(3, 9, 1), _TwoHeads())
    deployed = _Numbered(nn.Conv2d(3, 4, 1), _Head())
    torch.save({"model": training.state_dict()}, tmp_path / "training.pt")
    load_weights(deployed, tmp_path / "training.pt")
    original, folded = training.model[3], deployed.model[1]
    assert isinstance(original, _TwoHeads) and isinstance(folded, _Head)
    assert _same(training.model[0], deployed.model[0])
    x = torch.randn(2, 8, 3, 3)
    added, factor = original.get_parameter("ia.1.implicit"), original.get_parameter("im.1.implicit")
    torch.testing.assert_close(folded.m[1](x), factor * original.m[1](x + added))


@pytest.mark.parametrize(
    "names",
    [["model.1.m2.0.weight"], ["model.7.m2.0.weight", "model.8.m2.0.weight"], ["model.999999.m2.0.weight"], ["m2.0"]],
)
def test_a_second_head_that_is_none_is_a_misfit(tmp_path: Path, names: list[str]) -> None:
    deployed = _Numbered(nn.Conv2d(3, 4, 1), _Head())
    state = deployed.state_dict() | {name: torch.zeros(1) for name in names}
    torch.save(state, tmp_path / "odd.pt")
    with pytest.raises(UsageError, match="do not fit the model"):
        load_weights(deployed, tmp_path / "odd.pt")


def test_a_checkpoint_saved_after_fusing_meets_a_fused_model(tmp_path: Path) -> None:
    fused_net = nn.Sequential(nn.Conv2d(3, 4, 3))
    torch.save(fused_net.state_dict(), tmp_path / "fused.pt")
    model = nn.Sequential(nn.Conv2d(3, 4, 3, bias=False), nn.BatchNorm2d(4))

    def fuse() -> None:
        model[0] = nn.Conv2d(3, 4, 3)
        del model[1]

    assert read_checkpoint(tmp_path / "fused.pt").load_into(model, fuse)
    assert _same(model, fused_net)


@pytest.mark.parametrize(
    "content", [b"", b"text\n", b"\xff" * 8, b"\x02" + bytes(7) + b"{}", b"\x04" + bytes(7) + b'{"a"']
)
def test_broken_safetensors_are_told_in_one_line(tmp_path: Path, content: bytes) -> None:
    require_module("safetensors")
    path = tmp_path / "broken.safetensors"
    path.write_bytes(content)
    with pytest.raises(HwprofError, match=r"broken\.safetensors (is not a checkpoint|holds no weights)") as caught:
        load_weights(_net(), path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", ["pt", "old.pt", "safetensors"])
def test_a_file_that_is_cut_short_is_told_as_that(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"cut.{kind}"
    if kind == "safetensors":
        require_module("safetensors").torch.save_file(_filled().state_dict(), path)
    else:
        torch.save(_filled().state_dict(), path, _use_new_zipfile_serialization=kind == "pt")
    whole = path.read_bytes()
    for length in (len(whole) - 1, *((1000, 300, 30) if kind != "safetensors" else ())):
        path.write_bytes(whole[:length])
        with pytest.raises(UsageError, match=r"cut\.\S+ is cut short: .*\. Try: another copy of it") as caught:
            read_checkpoint(path)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("raised", [KeyError(101), IndexError("pop"), RecursionError("deep"), TypeError("no")])
def test_whatever_a_library_raises_names_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, raised: Exception
) -> None:
    def load(*_: object, **__: object) -> None:
        raise raised

    (tmp_path / "weights.pt").write_bytes(ZIP)
    monkeypatch.setattr(torch, "load", load)
    with pytest.raises(HwprofError, match=rf"weights\.pt is not a checkpoint .*{type(raised).__name__}"):
        read_checkpoint(tmp_path / "weights.pt")


@pytest.mark.parametrize("name", ["0.weight", "0.m.0.weight"])
def test_a_tensor_that_no_memory_holds_is_a_misfit(tmp_path: Path, name: str) -> None:
    """A few bytes in the file: one value, expanded."""
    huge = torch.zeros(1, dtype=torch.half).expand(1 << 20, 1 << 20, 1, 1)
    head = nn.Sequential(_Head()) if ".m." in name else _net()
    state = {**head.state_dict(), name: huge}
    if ".m." in name:
        state |= {"0.ia.0.implicit": torch.zeros(1, 4, 1, 1), "0.im.0.implicit": torch.zeros(1, 6, 1, 1)}
    torch.save(state, tmp_path / "huge.pt")
    assert (tmp_path / "huge.pt").stat().st_size < 100_000
    with pytest.raises(HwprofError, match="1 of another shape"):
        load_weights(head, tmp_path / "huge.pt")


def test_an_implicit_layer_of_other_channels_is_not_folded(tmp_path: Path) -> None:
    state = nn.Sequential(_TrainingHead()).state_dict()
    state["0.im.0.implicit"] = torch.zeros(1).expand(1, 1 << 40, 1, 1)
    torch.save(state, tmp_path / "odd.pt")
    with pytest.raises(HwprofError, match=r"2 unexpected \(0\.ia\.0\.implicit, 0\.im\.0\.implicit\)"):
        load_weights(nn.Sequential(_Head()), tmp_path / "odd.pt")


def test_a_file_that_claims_more_than_memory_holds_is_told_in_one_line(tmp_path: Path) -> None:
    """BINUNICODE8 with a length of 1 TiB."""
    (tmp_path / "bomb.pt").write_bytes(b"\x80\x04\x8e" + (1 << 40).to_bytes(8, "little") + b"x.")
    with pytest.raises(HwprofError, match=r"bomb\.pt .*memory") as caught:
        read_checkpoint(tmp_path / "bomb.pt")
    assert "\n" not in str(caught.value)


def test_weights_where_nobody_may_look_are_told_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    monkeypatch.setattr(Path, "stat", refuse)
    with pytest.raises(HwprofError, match=r"cannot read .*w\.pt: Permission denied"):
        read_checkpoint(tmp_path / "w.pt")


@pytest.mark.filterwarnings("error")
def test_what_torch_thinks_of_a_file_s_protocol_is_not_shown(tmp_path: Path) -> None:
    torch.save(_filled().state_dict(), tmp_path / "w.pt", pickle_protocol=4, _use_new_zipfile_serialization=False)
    assert read_checkpoint(tmp_path / "w.pt").state


@pytest.mark.parametrize(
    "change",
    [torch.Tensor.to_sparse, lambda value: value.to(torch.complex64), lambda value: value.to("meta")],
    ids=["sparse", "complex", "without data"],
)
@pytest.mark.filterwarnings("error")
def test_weights_that_cannot_be_copied_whole_are_named(
    tmp_path: Path, change: Callable[[torch.Tensor], torch.Tensor]
) -> None:
    state = _filled().state_dict()
    state["0.weight"] = change(state["0.weight"])
    torch.save(state, tmp_path / "odd.pt")
    with pytest.raises(HwprofError, match=r"do not fit the model: 1 [^;]*\(0\.weight\)") as caught:
        load_weights(_net(), tmp_path / "odd.pt")
    assert "\n" not in str(caught.value)


@pytest.mark.filterwarnings("ignore:.*nested tensors")
def test_nested_weights_are_named(tmp_path: Path) -> None:
    """They have no shape to ask for."""
    state = _filled().state_dict()
    state["0.weight"] = torch.nested.nested_tensor([torch.zeros(2), torch.zeros(3)])
    torch.save(state, tmp_path / "odd.pt")
    with pytest.raises(HwprofError, match=r"odd\.pt"):
        load_weights(_net(), tmp_path / "odd.pt")


def test_a_dictionary_that_is_named_many_times_is_looked_into_once(tmp_path: Path) -> None:
    """Sixty of them, each four times in the one around it."""
    inner: dict[str, object] = {"nothing": 1}
    for _ in range(60):
        inner = dict.fromkeys(("model", "ema", "state_dict", "model_state_dict"), inner)
    torch.save(inner, tmp_path / "nested.pt")
    with pytest.raises(HwprofError, match=r"nested\.pt"):
        load_weights(_net(), tmp_path / "nested.pt")


@pytest.mark.parametrize("overlapping", [False, True])
def test_an_archive_that_unpacks_to_more_than_it_has_is_refused_unread(tmp_path: Path, overlapping: bool) -> None:
    path = tmp_path / "bomb.pt"
    torch.save({"weight": torch.zeros(4)}, path)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED if overlapping else zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
        archive.writestr("archive/data/9", bytes(1 << 24))
        if overlapping:
            archive.filelist += [archive.filelist[-1]] * 9
    with pytest.raises(UsageError, match=r"bomb.pt is not a checkpoint .* more than the file has"):
        read_checkpoint(path)
