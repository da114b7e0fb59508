"""What a convolution's or a pooling's shapes and MACs leave open, in words."""

from __future__ import annotations

from torch import nn


def convolution(module: nn.Module) -> str | None:
    """What its shapes and MACs leave open: ``k3x3 s2x2 p1x1 d1x1 g1``, and how it is padded where not with zeros. The
    padding is that before the first element: ``same`` may put more behind the last one."""
    if not isinstance(module, (nn.Conv1d, nn.Conv2d, nn.Conv3d)):
        return None
    before: tuple[int, ...] = tuple(0 for _ in module.kernel_size)
    if module.padding == "same":
        before = tuple(step * (size - 1) // 2 for step, size in zip(module.dilation, module.kernel_size, strict=True))
    elif not isinstance(module.padding, str):
        before = tuple(module.padding)
    sizes = {"k": module.kernel_size, "s": module.stride, "p": before, "d": module.dilation}
    words = [f"{letter}{'x'.join(map(str, size))}" for letter, size in sizes.items()]
    return " ".join([*words, f"g{module.groups}", *([module.padding_mode] if module.padding_mode != "zeros" else [])])


def pooling(module: nn.Module) -> str | None:
    """``max k5x5 s1x1 p2x2 d1x1``, in as many dimensions as it pools."""
    kinds = {nn.MaxPool1d: 1, nn.MaxPool2d: 2, nn.MaxPool3d: 3}
    dimensions = next((number for kind, number in kinds.items() if isinstance(module, kind)), None)
    if dimensions is None:
        return None
    given = {"k": module.kernel_size, "s": module.stride, "p": module.padding, "d": module.dilation}
    sizes = {letter: size if isinstance(size, tuple) else (size,) * dimensions for letter, size in given.items()}
    return " ".join(["max", *(f"{letter}{'x'.join(map(str, size))}" for letter, size in sizes.items())])
