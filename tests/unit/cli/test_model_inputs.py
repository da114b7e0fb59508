"""``--input`` and ``--input-shape``."""

from __future__ import annotations

import pytest
import torch

from hwprof.cli.model_inputs import parse_input, parse_inputs
from hwprof.errors import UsageError
from hwprof.workload.spec import FLOATS, InputSpec


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1x3x224x224", InputSpec(shape=(1, 3, 224, 224))),
        ("1,3", InputSpec(shape=(1, 3))),
        ("x:7", InputSpec(name="x", shape=(7,))),
        ("1x128:int64", InputSpec(shape=(1, 128), dtype="int64")),
        (
            "input_ids:1x128:int64:0..30000",
            InputSpec(name="input_ids", shape=(1, 128), dtype="int64", range=(0, 30000)),
        ),
        ("t:4:float16:-1.5..2e1", InputSpec(name="t", shape=(4,), dtype="float16", range=(-1.5, 20))),
        ("t:4:int8:-128..127", InputSpec(name="t", shape=(4,), dtype="int8", range=(-128, 127))),
    ],
)
def test_an_input_in_words(text: str, expected: InputSpec) -> None:
    assert parse_input(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "x:",
        "x:axb",
        "x:0x3",
        "a b:1",
        "x:1:int64:0..1:2",
        "x:1:complex64",
        "x:1:int64:5",
        "x:1:int64:2..1",
        "x:1:int64:0.5..2",
        "x:1:uint8:-1..3",
        "x:1:int8:0..128",
        "x:1:float32:nan..1",
        "x:1:float32:0..inf",
        "x:1:float32:1e39..1e39",
        "x:1:float16:0..65536",
        "x:1:bfloat16:-3.4e38..0",
        "x:1:int64:..",
        f"x:{1 << 41}",
        f"x:{'9' * 5000}",
    ],
)
def test_what_is_no_input_is_a_usage_error(text: str) -> None:
    with pytest.raises(UsageError, match="--input"):
        parse_input(text)


def test_the_short_form_is_one_input_and_stands_alone() -> None:
    assert parse_inputs("1,3,8,8", ()) == parse_inputs(None, ("1x3x8x8",)) == (InputSpec(shape=(1, 3, 8, 8)),)
    with pytest.raises(UsageError, match="--input-shape beside --input"):
        parse_inputs("1,3", ("y:1x3",))
    with pytest.raises(UsageError, match="y is given twice"):
        parse_inputs(None, ("y:1", "y:2"))


def test_the_largest_values_are_those_of_torch() -> None:
    assert {name: torch.finfo(getattr(torch, name)).max for name in FLOATS} == FLOATS
