"""The model of synthetic runs: its modules, what one call of each costs, and its static tables."""

from __future__ import annotations

from typing import Final, NamedTuple

import polars as pl


class Module(NamedTuple):
    """A row of the model: where it stands, what it is, and what one call costs."""

    path: str
    type: str
    duration_ns: int = 0  # leaves only, in the measure pass
    macs: int = 0
    parameters: int = 0
    shapes: tuple[str, str] = ("", "")


MODULES: Final = (
    Module("model.0", "Conv", 0, 11_059_200, 896, ("1x3x640x480", "1x32x160x120")),
    Module("model.0.conv", "Conv2d", 400_000, 11_059_200, 896, ("1x3x640x480", "1x32x160x120")),
    Module("model.0.act", "SiLU", 60_000, 0, 0, ("1x32x160x120", "1x32x160x120")),
    Module("model.1", "Block", 0, 353_894_400, 18_496, ("1x32x160x120", "1x64x160x120")),
    Module("model.1.cv1", "Conv", 0, 353_894_400, 18_496, ("1x32x160x120", "1x64x160x120")),
    Module("model.1.cv1.conv", "Conv2d", 900_000, 353_894_400, 18_496, ("1x32x160x120", "1x64x160x120")),
    Module("model.1.cv1.act", "SiLU", 90_000, 0, 0, ("1x64x160x120", "1x64x160x120")),
    Module("model.2", "Detect", 250_000, 4_915_200, 260, ("1x64x160x120", "1x100x6")),
)
STAGES: Final = ("load", "preprocess", "inference", "postprocess", "save")
OPERATORS: Final = {
    "Conv2d": ("aten::conv2d", "aten::convolution", "aten::mkldnn_convolution"),
    "SiLU": ("aten::silu_",),
    "Detect": ("aten::conv2d", "aten::mkldnn_convolution"),
}


def is_leaf(path: str) -> bool:
    """Whether the module has no child."""
    return not any(module.path.startswith(path + ".") for module in MODULES)


def layers() -> pl.DataFrame:
    """The table ``layers``."""
    return pl.DataFrame(
        [
            {
                "order": order,
                "index": int(module.path.split(".")[1]),
                "path": module.path,
                "type": module.type,
                "leaf": is_leaf(module.path),
                "depth": module.path.count("."),
                "parameters": module.parameters,
                "macs": module.macs,
                "own_macs": module.macs if is_leaf(module.path) else 0,
                "bytes": 4 * (module.parameters + 1_000_000) if is_leaf(module.path) else None,
                "calls": 1,
                "input_shapes": module.shapes[0],
                "output_shapes": module.shapes[1],
                "more_shapes": 0,
                "convolution": None,
                "compiled": False,
            }
            for order, module in enumerate(MODULES)
        ]
    )


def layer_calls() -> pl.DataFrame:
    """The table ``layer_calls``."""
    return layers().select("path", pl.lit(0).alias("call"), "input_shapes", "output_shapes", "macs", "bytes")
