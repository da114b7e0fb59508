"""Watching the modules of a model."""

from __future__ import annotations

import sys

import torch
from torch import nn

from hwprof.session.recorder import SpanRecorder
from hwprof.workload.layer_hooks import LayerHooks


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
