"""Watching the modules of a model."""

from __future__ import annotations

import sys

import pytest
import torch
from torch import nn

from hwprof.session.recorder import SpanRecorder
from hwprof.workload.layer_hooks import LayerHooks, layers
from hwprof.workload.module_call import as_a_whole, seen_inside


def test_a_model_that_is_almost_too_deep_works_while_it_is_watched() -> None:
    model: nn.Module = nn.ReLU()
    limit = sys.getrecursionlimit()
    for _ in range(limit // 5):  # four of Python's levels each
        model = nn.Sequential(model)
    x = torch.ones(1)
    assert torch.equal(model(x), x)
    recorder = SpanRecorder()
    hooks = LayerHooks({"": model}, recorder)
    hooks.time_only()
    with recorder.iteration(0, warmup=False, event_set=None):
        assert torch.equal(model(x), x)
    hooks.remove()
    assert recorder.layer_calls(0, hooks.leaves) == 1
    assert sys.getrecursionlimit() == limit


def test_at_rest_modules_are_as_they_were_and_are_watched_again_after_it() -> None:
    model = nn.Sequential(nn.ReLU(), nn.ReLU())
    own = model[1].forward
    model[1].__dict__["forward"] = own  # as of fused modules
    recorder = SpanRecorder()
    hooks = LayerHooks({"": model}, recorder)
    for iteration, watch in enumerate((hooks.time_only, hooks.rest, hooks.time_only)):
        watch()
        with recorder.iteration(iteration, warmup=False, event_set=None):
            model(torch.ones(1))
    assert [recorder.layer_calls(iteration, hooks.leaves) for iteration in range(3)] == [2, 0, 2]
    hooks.remove()
    assert "forward" not in model[0].__dict__ and model[1].__dict__["forward"] is own


@pytest.mark.parametrize("name", ["whole", "unattributed", "(root)", "x (own)"])
def test_no_module_is_called_what_an_owner_is_that_is_no_module(name: str) -> None:
    model = nn.Sequential()
    model.add_module(name, nn.Sequential(nn.ReLU()))
    model.add_module("x", nn.ReLU())
    paths = [path for path, _ in layers("", model)]
    assert paths == ["", f"{name} (module)", f"{name} (module).0", "x"]


def test_a_model_of_one_layer_may_have_the_name_of_an_owner_too() -> None:
    model = type("whole", (nn.ReLU,), {})()
    assert [path for path, _ in layers("", model)] == ["whole (module)"]


class StandIn:
    """What runs a model, and says whether it is to keep what its operators do."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def watch(self) -> None:
        self.told.append("watch")

    def rest(self) -> None:
        self.told.append("rest")


def test_of_what_another_program_runs_the_model_alone_is_watched_and_never_counted() -> None:
    import torch._dynamo  # as the exporter does: calls take another way then

    model, stand_in = nn.Sequential(nn.ReLU(), nn.ReLU()), StandIn()
    forward = seen_inside(lambda x: x + 1, stand_in)
    model.__dict__["forward"] = forward
    assert layers("m.", model) == [("m", model)]
    recorder = SpanRecorder()
    hooks = LayerHooks({"m.": model}, recorder)
    assert hooks.leaves == frozenset()
    for iteration, watch in enumerate((hooks.time_only, hooks.count, hooks.rest)):
        watch()
        with recorder.iteration(iteration, warmup=False, event_set=None):
            assert model(torch.ones(1)) == 2
    hooks.remove()
    assert stand_in.told == ["watch", "watch", "rest"] and model.__dict__["forward"] is forward
    assert recorder.table(1).filter(kind="layer").select("iteration", "path").rows() == [(0, "m"), (1, "m")]
    assert len(recorder.counted_spans()) == 0
    assert hooks.unseen() == []


def test_what_is_done_as_a_whole_is_a_leaf_whoever_has_loaded_dynamo() -> None:

    model = nn.Sequential(nn.ReLU(), nn.ReLU())
    model.__dict__["forward"] = as_a_whole(lambda x: x + 1)
    hooks = LayerHooks({"": model}, SpanRecorder())
    assert hooks.leaves == {"Sequential"}
    hooks.remove()
