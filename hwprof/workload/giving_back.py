"""The memory of a model that nobody calls any more, given back before what was measured is added up."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from contextlib import suppress

import torch
from torch import nn


def give_back(modules: Iterable[nn.Module]) -> None:
    """Leaves the modules without the numbers of their parameters; what is no plain parameter stays, as no code of the
    user's may run. The modules cannot be called any more."""
    seen: set[int] = set()
    left: list[object] = list(modules)
    while left:
        own = vars(left.pop())
        for parameter in own.get("_parameters", {}).values():
            if type(parameter) is nn.Parameter:
                with suppress(RuntimeError):  # of a sparse one, which takes no dense numbers
                    parameter.data = torch.empty(0)
        below = [one for one in own.get("_modules", {}).values() if one is not None and id(one) not in seen]
        seen.update(map(id, below))
        left += below
    with suppress(AttributeError):  # the C library is no GNU one
        ctypes.CDLL(None).malloc_trim(0)  # most parameters are small: their pages stay the process's own otherwise
