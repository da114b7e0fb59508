"""What YOLOv7 trains and does not deploy, in a checkpoint's state: implicit layers of the head, and a second head."""

from __future__ import annotations

import re
from typing import Final

from hwprof.workload.tensors import StateDict, in_single_precision

_NUMBERED: Final = re.compile(r"model\.(\d{1,6})\.(.*)", re.DOTALL)
"""A key of a numbered module: its number, and the rest."""

_SECOND_HEAD: Final = "m2."


def deploy(state: StateDict, own: StateDict) -> None:
    """Makes a state that of the deployed model, whose own has the names and shapes that are wanted; in place."""
    _leave_out_second_head(state, own)
    _fold_implicit(state, own)


def _leave_out_second_head(state: StateDict, own: StateDict) -> None:
    """The P6 models are trained with a second head, whose features come from modules of its own: these stand where the
    deployed model has its head, which has a higher number for it."""
    numbers = {int(found[1]) for key in state if (found := _NUMBERED.match(key)) and found[2].startswith(_SECOND_HEAD)}
    wanted = max((int(found[1]) for key in own if (found := _NUMBERED.match(key))), default=-1)
    if len(numbers) != 1 or (head := numbers.pop()) <= wanted or wanted < 0:
        return
    for key in list(state):
        found = _NUMBERED.match(key)
        if found is None or int(found[1]) < wanted:
            continue
        value = state.pop(key)
        if int(found[1]) == head and not found[2].startswith(_SECOND_HEAD):
            state[f"model.{wanted}.{found[2]}"] = value


def _fold_implicit(state: StateDict, own: StateDict) -> None:
    """Folds YOLOv7's implicit knowledge (added before, multiplied after a head's 1x1 convolution) into it, in place.

    m·(W·(x + a) + b) = (m·W)·x + m·(W·a + b), for each output channel.
    """
    for key in [key for key in state if ".ia." in key and key.endswith(".implicit")]:
        stem, level = key.removesuffix(".implicit").split(".ia.")
        weight, bias = f"{stem}.m.{level}.weight", f"{stem}.m.{level}.bias"
        factor = f"{stem}.im.{level}.implicit"
        if not {weight, bias, factor} <= state.keys() or not _is_head(state, own, weight, bias, key, factor):
            continue
        added, multiplied = (
            in_single_precision(state.pop(key)).flatten(),
            in_single_precision(state.pop(factor)).flatten(),
        )
        stored = in_single_precision(state[weight])
        state[bias] = multiplied * (in_single_precision(state[bias]) + stored.flatten(1) @ added)
        state[weight] = multiplied.view(-1, 1, 1, 1) * stored


def _is_head(state: StateDict, own: StateDict, weight: str, bias: str, added: str, factor: str) -> bool:
    """Whether the convolution is the model's and 1x1, and its implicit layers have a value for each channel."""
    if any(key not in own or own[key].shape != state[key].shape for key in (weight, bias)):
        return False
    shape = own[weight].shape
    outputs, inputs = state[factor].numel(), state[added].numel()
    return len(shape) == 4 and (outputs, inputs, 1, 1) == tuple(shape)
