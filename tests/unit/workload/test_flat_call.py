"""A model's call by its tensors."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.utils import _pytree as pytree

from hwprof.workload.runtimes.flat_call import FlatCall, Structure, flatten, kind_of, tensors_of
from tests.support.models.runtimes import Several, several


def test_what_comes_out_is_nested_as_the_model_nests_it() -> None:
    model, (image, words) = several()
    leaves, spec = flatten((image,), {"words": words, "scale": 2.0})
    given: list[Structure] = []
    with torch.inference_mode():
        tensors = FlatCall(model, leaves, spec, given.append)(*tensors_of(leaves))
        expected: Any = model(image, words, scale=2.0)
    found = given[-1].filled(tensors)
    assert given[-1].tensors == len(tensors) == 3
    assert pytree.tree_structure(found) == pytree.tree_structure(expected)
    assert found["maps"][1][1] == 3 and found["none"] is None
    assert torch.equal(found["logits"], expected["logits"]) and torch.equal(found["maps"][0], expected["maps"][0])


def test_calls_are_of_a_kind_by_shapes_types_and_what_is_no_tensor() -> None:
    x = torch.rand(2, 3)
    kinds = {
        kind_of(*flatten((one,), {"scale": scale}))
        for one, scale in [(x, 1.0), (torch.rand(2, 3), 1.0), (x, 2.0), (x.double(), 1.0), (x[:1], 1.0), ([x], 1.0)]
    }
    assert len(kinds) == 5


def test_the_model_stays_in_its_mode() -> None:
    model = Several().train()
    assert FlatCall(model, [], pytree.tree_structure(()), lambda _: None).training
    model.eval()
    assert not FlatCall(model, [], pytree.tree_structure(()), lambda _: None).training
    assert isinstance(model.bn, nn.BatchNorm2d) and not model.bn.training
