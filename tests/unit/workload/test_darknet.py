"""Darknet's models and weights: their published sizes, their numbers in order, and files that are hostile."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hwprof.errors import HwprofError, UsageError
from hwprof.workload.checkpoints import read_checkpoint
from hwprof.workload.darknet_cfg import read_cfg
from hwprof.workload.detector import build_detector
from hwprof.workload.model_registry import find_model
from tests.support import darknet_models

PUBLISHED = {
    darknet_models.yolov3: 248_007_048,
    darknet_models.yolov3_tiny: 35_434_956,
    darknet_models.yolov4: 257_717_640,
    darknet_models.yolov4_tiny: 24_251_276,
}
"""Bytes of the .weights that Darknet's authors published for each."""

HEADER_BYTES = 20


def written(text: str, folder: Path) -> Path:
    file = folder / "model.cfg"
    file.write_text(text)
    return file


def built(text: str, folder: Path) -> torch.nn.Module:
    return build_detector(find_model(str(written(text, folder))), 0).module


@pytest.mark.parametrize("text", PUBLISHED)
def test_a_published_model_has_as_many_numbers_as_its_weights(text: Callable[[], str], tmp_path: Path) -> None:
    from hwprof.workload.darknet_model import build_darknet
    from hwprof.workload.darknet_weights import numbers_in_file

    with torch.device("meta"):
        model = build_darknet(written(text(), tmp_path))
    assert HEADER_BYTES + 4 * numbers_in_file(model) == PUBLISHED[text]


def test_boxes_of_both_strides_come_out_and_fusing_changes_nothing(tmp_path: Path) -> None:
    detector = build_detector(find_model(str(written(darknet_models.small(), tmp_path))), 0)
    assert (detector.stride, detector.objectness, len(detector.names)) == (4, True, 80)
    for module in detector.module.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.running_mean.uniform_(-0.2, 0.2)  # type: ignore[union-attr]
            module.running_var.uniform_(0.5, 2)  # type: ignore[union-attr]
    image = torch.rand(2, 3, 32, 48)
    with torch.inference_mode():
        before = detector.module(image)
        detector.fuse()
        after = detector.module(image)
    assert before.shape == (2, 2 * (8 * 12 + 16 * 24), 85)
    assert torch.allclose(before, after, atol=1e-3 * float(before.abs().max()))
    assert not any(isinstance(module, torch.nn.BatchNorm2d) for module in detector.module.modules())


def test_a_box_lies_in_its_cell_and_has_its_anchor(tmp_path: Path) -> None:
    model = built(darknet_models.small(), tmp_path)
    heads = [module for module in model.modules() if type(module).__name__ == "Yolo"]
    found = heads[0](torch.zeros(1, 170, 3, 5))
    assert found.shape == (1, 2 * 3 * 5, 85)
    first, last = found[0, 0], found[0, -1]
    assert first[:5].tolist() == [2.0, 2.0, 8.0, 8.0, 0.5] and last[:4].tolist() == [18.0, 10.0, 16.0, 16.0]


@given(side=st.integers(6, 13), size=st.integers(1, 5), stride=st.integers(1, 3), padding=st.none() | st.integers(0, 4))
def test_pooling_is_padded_as_darknet_pads_it(side: int, size: int, stride: int, padding: int | None) -> None:
    """Half of the padding, rounded down, lies before; what a window has outside does not count."""
    from hwprof.workload.darknet_layers import MaxPool

    padding = size - 1 if padding is None else min(padding, size - 1)
    x = torch.rand(1, 2, side, side + 1)
    found = MaxPool(size, stride, padding)(x)
    around = torch.full((1, 2, side + 2 * padding, side + 1 + 2 * padding), -torch.inf)
    begin = padding // 2
    around[..., begin : begin + side, begin : begin + side + 1] = x
    height, width = ((one + padding - size) // stride + 1 for one in (side, side + 1))
    assert found.shape == (1, 2, height, width)
    for row in range(height):
        for column in range(width):
            window = around[..., row * stride : row * stride + size, column * stride : column * stride + size]
            assert torch.equal(found[..., row, column], window.amax(dim=(-2, -1)))


@pytest.mark.parametrize(
    ("keys", "padding"),
    [("size=2\npad=1", 1), ("size=4\npad=1", 2), ("size=3\npad=1\ndilation=2", 2), ("size=3\npadding=1\ndilation=2", 2),
     ("size=5\npad=1", 2), ("size=3", 0)],
)  # fmt: skip
def test_convolutions_are_padded_as_darknet_pads_them(keys: str, padding: int, tmp_path: Path) -> None:
    """By half of the size, rounded down, on each side; dilated as the kernel is."""
    head = "[convolutional]\nfilters=18\n[yolo]\nclasses=1\nanchors=1,2,3,4,5,6\n"
    model = built(f"{NET}[convolutional]\nfilters=4\n{keys}\n{head}", tmp_path)
    (first, *_) = (module for module in model.modules() if isinstance(module, torch.nn.Conv2d))
    assert first.padding == (padding, padding)


def test_paths_are_the_layers_numbers(tmp_path: Path) -> None:
    names = dict(built(darknet_models.small(), tmp_path).named_modules())
    assert {"model.0.conv", "model.0.bn", "model.7.conv", "model.8.conv", "model.14.conv"} <= set(names)


@pytest.mark.parametrize(("version", "seen"), [((0, 2, 0), struct.pack("<q", 7)), ((0, 1, 0), struct.pack("<i", 7))])
def test_weights_are_read_in_darknets_order(version: tuple[int, int, int], seen: bytes, tmp_path: Path) -> None:
    model = built(darknet_models.small(), tmp_path)
    from hwprof.workload.darknet_weights import numbers_in_file

    numbers = np.random.default_rng(0).normal(size=numbers_in_file(model)).astype("<f4")
    file = tmp_path / "model.weights"
    file.write_bytes(struct.pack("<3i", *version) + seen + numbers.tobytes())
    assert read_checkpoint(file).load_into(model) is False
    state = model.state_dict()
    place = 0
    for key in ("bn.bias", "bn.weight", "bn.running_mean", "bn.running_var", "conv.weight"):  # of the first layer
        tensor = state[f"model.0.{key}"]
        assert np.array_equal(tensor.numpy().ravel(), numbers[place : place + tensor.numel()])
        place += tensor.numel()
    assert np.array_equal(state["model.14.conv.weight"].numpy().ravel(), numbers[-8 * 170 :])
    assert np.array_equal(state["model.14.conv.bias"].numpy(), numbers[-9 * 170 : -8 * 170])


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "shorter than a header"),
        (bytes(12), "holds 0 bytes of numbers, the model's take"),
        (bytes(20), "holds 4 bytes of numbers, the model's take"),
        (struct.pack("<3iq", 0, 2, 5, 0) + bytes(4001), "holds 4,001 bytes of numbers, the model's take"),
    ],
)
def test_weights_that_do_not_fit_are_told(content: bytes, told: str, tmp_path: Path) -> None:
    file = tmp_path / "model.weights"
    file.write_bytes(content)
    with pytest.raises(UsageError, match=told):
        read_checkpoint(file).load_into(built(darknet_models.small(), tmp_path))


def test_weights_of_darknet_are_for_its_models(tmp_path: Path) -> None:
    file = tmp_path / "model.weights"
    file.write_bytes(bytes(100))
    with pytest.raises(UsageError, match="is for models of Darknet"):
        read_checkpoint(file).load_into(torch.nn.Linear(1, 1))


NET = "[net]\nchannels=3\n"
CONV = "[convolutional]\nfilters=8\nsize=3\nactivation=leaky\n"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "begins with no"),
        ("hello", "is no model file of Darknet: line 1, hello"),
        (NET + CONV * 3 + "[upsmaple]\n", "line 15, layer 3 [upsmaple]: it is none of the layers"),
        (NET + "[upsmaple]\n", "did you mean [upsample]?"),
        (NET + CONV.replace("size=3", "stride=255") * 2, "come to more than 1,024"),
        (NET + CONV + "[maxpool]\nsize=2\npadding=60\n", "padding=60 is not in 0 to 2"),
        (NET + CONV + "[route]\nlayers=" + "-1," * 100, "reads more than 64 layers"),
        (NET + CONV.replace("8", "\u096c"), "is no number"),
        (NET, "begins with no"),
        (NET + CONV, "no layer is a"),
        (NET.replace("3", "1") + CONV, "an image has three"),
        (NET + "[lstm]\noutput=3\n", "is none of the layers"),
        (NET + CONV.replace("8", "x"), "filters=x is no number"),
        (NET + CONV.replace("8", "0"), "filters=0 is not in 1 to 65536"),
        (NET + CONV.replace("leaky", "__import__"), "activation=__import__ is none"),
        (NET + CONV.replace("filters=8", "filters=65536\nsize=255") * 9, "more than 2,000,000,000 parameters"),
        (NET + CONV + "[route]\nlayers=5\n", "names no layers before it"),
        (NET + CONV + "[route]\nlayers=\n", "names no layers before it"),
        (NET + CONV + "[route]\n", "it has no layers"),
        (NET + CONV + "[route]\nlayers=-1\ngroups=3\n", "not evenly"),
        (NET + CONV + CONV.replace("8", "4") + "[shortcut]\nfrom=-2\n", "different numbers of channels"),
        (NET + CONV + CONV.replace("size=3", "stride=2") + "[shortcut]\nfrom=-2\n", "layers of different sizes"),
        (NET + CONV + "[yolo]\nclasses=80\nanchors=1,2\nmask=0\n", "reads 8 channels and needs 1 x"),
        (NET + CONV + "[yolo]\nclasses=80\nanchors=1,2\nmask=7\n", "names anchors that there are not"),
        (NET + "[a\x1b]\n" + CONV, "is no model file"),
        (NET + CONV + "stride_x=2\n", "stride_x other than stride is not read here"),
        (NET + CONV + "antialiasing=1\n", "antialiasing=1 is not read here"),
        (NET + CONV + "[upsample]\nscale=0.5\n", "scale=0.5 is not read here"),
        (NET + CONV + "[maxpool]\nmaxpool_depth=1\n", "maxpool_depth=1 is not read here"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_model_file_is_told_with_its_layer(text: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as failure:
        built(text, tmp_path)
    assert told in str(failure.value) and "\x1b" not in str(failure.value)


LINES = [
    *(NET + CONV).splitlines(), "[yolo]", "[route]", "layers=-1", "=", "[", "anchors=1,2", "classes=3", "\x00",
    "[shortcut]", "from=0", "[upsample]", "stride=9", "[maxpool]",
]  # fmt: skip


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(lines=st.lists(st.sampled_from(LINES), max_size=30))
def test_no_model_file_does_harm(lines: list[str], tmp_path: Path) -> None:
    from hwprof.workload.darknet_model import build_darknet

    file = written("\n".join(lines), tmp_path)
    try:
        with torch.device("meta"):
            build_darknet(file)
    except HwprofError as error:
        assert str(file) in str(error)


def test_weights_that_change_while_they_are_read_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from hwprof.workload.darknet_weights import numbers_in_file

    model = built(darknet_models.small(), tmp_path)
    file = tmp_path / "model.weights"
    file.write_bytes(struct.pack("<3iq", 0, 2, 5, 0) + bytes(4 * numbers_in_file(model)))
    monkeypatch.setattr(np, "fromfile", lambda *_, **__: np.zeros(7, dtype="<f4"))
    with pytest.raises(HwprofError, match="became shorter while it was read"):
        read_checkpoint(file).load_into(model)


def test_a_mark_of_utf_8_before_the_first_line_is_nothing(tmp_path: Path) -> None:
    file = tmp_path / "marked.cfg"
    file.write_bytes(b"\xef\xbb\xbf" + (NET + CONV).encode())
    assert len(read_cfg(file)[1]) == 1


@pytest.mark.parametrize("kind", ["folder", "pipe"])
def test_what_is_no_file_is_bad_usage(kind: str, tmp_path: Path) -> None:
    place = tmp_path / "x.cfg"
    place.mkdir() if kind == "folder" else os.mkfifo(place)
    with pytest.raises(UsageError, match="is no model file"):
        read_cfg(place)


def test_a_file_that_is_not_there_is_told_before_anything_begins(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no model file"):
        read_cfg(tmp_path / "none.cfg")
