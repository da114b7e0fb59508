"""A recording in the way of a module's calls: seen by nobody, and gone without a trace."""

from __future__ import annotations

import copy
import inspect
import io
from collections.abc import Iterator
from types import MethodType
from typing import Any

import pytest
import torch
from torch import nn

from hwprof.session.recorder import SpanRecorder
from hwprof.workload.layer_hooks import LayerHooks, is_leaf, layers
from hwprof.workload.module_call import ModuleCall


class Doubling(nn.Linear):
    def forward(self, input: torch.Tensor, twice: bool = False) -> torch.Tensor:
        return super().forward(input) * (2 if twice else 1)


class Counting:
    """A compiler that compiles nothing, and knows how often it was asked."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, graph: torch.fx.GraphModule, _: Any) -> Any:
        self.asked += 1
        return graph.forward


@pytest.fixture(autouse=True)
def _compiled_anew() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def watched(model: nn.Module) -> tuple[LayerHooks, SpanRecorder]:
    recorder = SpanRecorder()
    return LayerHooks({"": model}, recorder), recorder


def call(recorder: SpanRecorder, iteration: int, model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    with recorder.iteration(iteration, warmup=False, event_set=None), torch.inference_mode():
        found: torch.Tensor = model(x)
    return found


def paths(recorder: SpanRecorder) -> list[tuple[str, int]]:
    found = recorder.table(1).filter(kind="layer").select("path", "iteration").rows()
    return sorted((str(path), int(iteration)) for path, iteration in found)


def test_a_watched_method_is_a_method_with_its_own_signature() -> None:
    module = Doubling(2, 2)
    plain = inspect.signature(module.forward)
    watched(nn.Sequential(module))[0].time_only()
    assert "forward" in module.__dict__ and isinstance(module.forward, MethodType)
    assert module.forward.__self__ is module and module.forward.__name__ == "forward"
    assert inspect.signature(module.forward) == plain


def test_a_copy_of_a_watched_module_computes_with_its_own_weights() -> None:
    module = nn.Linear(2, 2)
    watched(nn.Sequential(module))[0].time_only()
    other = copy.deepcopy(module)
    with torch.no_grad():
        other.weight.zero_()
        other.bias.zero_()
    assert not other(torch.ones(1, 2)).any() and module(torch.ones(1, 2)).any()


def test_a_watched_module_can_be_saved_and_traced() -> None:
    module, x = nn.Linear(2, 2), torch.ones(1, 2)
    watched(nn.Sequential(module))[0].time_only()
    file = io.BytesIO()
    torch.save(module, file)
    file.seek(0)
    assert torch.equal(torch.load(file, weights_only=False)(x), module(x))
    traced: Any = torch.jit.trace  # has no types
    assert torch.equal(traced(module, x)(x), module(x))


def test_what_the_models_own_code_puts_there_stays() -> None:
    model, x = nn.Sequential(nn.ReLU(), nn.ReLU()), torch.ones(1)
    hooks, recorder = watched(model)
    hooks.time_only()
    model[0].forward = torch.zeros_like
    for watch in (hooks.rest, hooks.time_only, hooks.rest, hooks.remove):
        watch()
        assert not call(recorder, 0, model, x).any()
    assert hooks.unseen() == ["0"]


def test_what_is_taken_away_is_not_seen_though_it_is_put_there_again() -> None:
    """As a model does that empties its modules' ``__dict__``: calls find the class's method."""
    model = nn.Sequential(nn.ReLU(), nn.ReLU())
    hooks, recorder = watched(model)
    for iteration, watch in enumerate((hooks.time_only, hooks.time_only)):
        watch()
        model[0].__dict__.pop("forward", None)
        call(recorder, iteration, model, torch.ones(1))
    hooks.remove()
    assert hooks.unseen() == ["0"] and "0" not in {path for path, _ in paths(recorder)}
    assert "forward" not in model[0].__dict__


def test_what_puts_back_what_it_found_is_watched_again() -> None:
    model = nn.Sequential(nn.ReLU(), nn.ReLU())
    hooks, recorder = watched(model)
    for iteration, watch in enumerate((hooks.time_only, hooks.rest, hooks.time_only)):
        watch()
        kept = model[0].forward
        model[0].forward = torch.zeros_like
        model[0].forward = kept
        call(recorder, iteration, model, torch.ones(1))
    assert [path for path, _ in paths(recorder)].count("0") == 2 and not hooks.unseen()
    hooks.rest()
    assert torch.equal(model(torch.ones(1)), torch.ones(1)) and not hooks.unseen()


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(2, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.inner(x))


def compiled_in_place(backend: Counting) -> nn.Module:
    block = Block()
    block.compile(backend=backend, fullgraph=True)
    return nn.Sequential(block, nn.ReLU())


def compiled_forward(backend: Counting) -> nn.Module:
    block = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    block.forward = torch.compile(block.forward, backend=backend, fullgraph=True)  # type: ignore[method-assign]
    return nn.Sequential(block, nn.ReLU())


def compiled_class(backend: Counting) -> nn.Module:
    class Compiled(Block):
        forward = torch.compile(Block.forward, backend=backend, fullgraph=True)

    return nn.Sequential(Compiled(), nn.ReLU())


def compiled_module(backend: Counting) -> nn.Module:
    block = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    compiled: Any = torch.compile(block, backend=backend, fullgraph=True)
    return nn.Sequential(compiled, nn.ReLU())


@pytest.mark.parametrize("made", [compiled_in_place, compiled_forward, compiled_class, compiled_module])
def test_what_is_compiled_as_a_whole_is_one_layer_and_compiled_once(made: Any) -> None:
    backend = Counting()
    model, x = made(backend), torch.ones(1, 2)
    assert is_leaf(model[0]) and [path for path, _ in layers("", model)] == ["", "0", "1"]
    with torch.inference_mode():
        expected = model(x)
    assert backend.asked == 1
    hooks, recorder = watched(model)
    for iteration, watch in enumerate((hooks.time_only, hooks.rest, hooks.count, hooks.time_only)):
        watch()
        assert torch.equal(call(recorder, iteration, model, x), expected)
    assert backend.asked == 1
    assert paths(recorder) == sorted((path, iteration) for path in ("", "0", "1") for iteration in (0, 2, 3))
    hooks.remove()
    assert torch.equal(model(x), expected)


def test_a_class_of_torchs_own_that_is_compiled_in_place_is_not_compiled_at_all() -> None:
    backend, x = Counting(), torch.ones(1, 2)
    block = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    block.compile(backend=backend)
    model = nn.Sequential(block, nn.ReLU())
    hooks, recorder = watched(model)
    for iteration, watch in enumerate((hooks.time_only, hooks.rest, hooks.count)):
        watch()
        call(recorder, iteration, model, x)
    assert backend.asked == 0
    assert {path for path, _ in paths(recorder)} == {"", "0", "0.0", "0.1", "1"}


def test_layers_within_a_compiled_function_are_part_of_it_and_it_is_compiled_once() -> None:
    backend = Counting()

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second, self.outside = nn.Linear(2, 2), nn.Linear(2, 2), nn.ReLU()
            self.function = torch.compile(lambda x: self.second(self.first(x)), backend=backend, fullgraph=True)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            found: torch.Tensor = self.outside(self.function(x))
            return found

    model, x = Model(), torch.ones(1, 2)
    hooks, recorder = watched(model)
    hooks.time_only()
    expected = call(recorder, 0, model, x)
    for iteration, watch in enumerate((hooks.rest, hooks.count, hooks.time_only), 1):
        watch()
        assert torch.equal(call(recorder, iteration, model, x), expected)
    assert backend.asked == 1
    assert paths(recorder) == sorted((path, iteration) for path in ("", "outside") for iteration in (0, 2, 3))


def test_what_is_replaced_or_cannot_be_watched_is_told() -> None:
    class Odd(nn.ReLU):
        @property
        def forward(self) -> Any:  # type: ignore[override]
            return torch.relu

    model = nn.Sequential(nn.ReLU(), Odd(), nn.ReLU())
    hooks, recorder = watched(model)
    hooks.time_only()
    call(recorder, 0, model, torch.ones(1))
    assert hooks.unseen() == ["1"]
    model[2] = nn.Tanh()
    hooks.remove()
    assert hooks.unseen() == ["1", "2"]


def test_a_layers_name_that_is_no_text_is_made_one() -> None:
    model = nn.Sequential()
    model.add_module("\ud800", nn.ReLU())
    assert [path for path, _ in layers("", model)] == ["", "\\ud800"]


def test_a_module_is_as_it_was_when_the_recording_is_gone() -> None:
    module = nn.Linear(2, 2)
    before = dict(module.__dict__)
    place = ModuleCall(module)
    place.place(lambda *arguments: place.function(*arguments))
    place.restore()
    assert module.__dict__ == before
