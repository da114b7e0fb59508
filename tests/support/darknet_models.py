"""Darknet's published models as its .cfg files have them, written from their structure."""

from __future__ import annotations

from collections.abc import Sequence

ANCHORS_9 = "10,13, 16,30, 33,23, 30,61, 62,45, 59,119, 116,90, 156,198, 373,326"
ANCHORS_9_OF_4 = "12,16, 19,36, 40,28, 36,75, 76,55, 72,146, 142,110, 192,243, 459,401"
ANCHORS_6 = "10,14, 23,27, 37,58, 81,82, 135,169, 344,319"


def section(kind: str, **values: object) -> str:
    return "\n".join([f"[{kind}]", *(f"{key}={value}" for key, value in values.items()), ""])


def conv(filters: int, size: int = 1, stride: int = 1, act: str = "leaky", bn: bool = True) -> str:
    norm = {"batch_normalize": 1} if bn else {}
    return section("convolutional", **norm, filters=filters, size=size, stride=stride, pad=1, activation=act)


def route(*layers: int, **more: int) -> str:
    return section("route", layers=",".join(map(str, layers)), **more)


def yolo(mask: str, anchors: str, **more: object) -> list[str]:
    number = len(anchors.split(",")) // 2
    return [
        conv(255, act="linear", bn=False),
        section("yolo", mask=mask, anchors=anchors, classes=80, num=number, **more),
    ]


def turns(narrow: int, wide: int, number: int) -> list[str]:
    """1x1 and 3x3 in turn, so many in all."""
    return [conv(wide, 3) if place % 2 else conv(narrow) for place in range(number)]


def cfg(layers: Sequence[str]) -> str:
    return "\n".join([section("net", batch=1, width=416, height=416, channels=3), *layers])


def yolov3() -> str:
    layers = [conv(32, 3)]
    for wide, blocks in ((64, 1), (128, 2), (256, 8), (512, 8), (1024, 4)):
        layers.append(conv(wide, 3, 2))
        for _ in range(blocks):
            layers += [conv(wide // 2), conv(wide, 3), section("shortcut", **{"from": -3, "activation": "linear"})]
    layers += [*turns(512, 1024, 6), *yolo("6,7,8", ANCHORS_9)]
    for narrow, joined, mask in ((256, 61, "3,4,5"), (128, 36, "0,1,2")):
        layers += [route(-4), conv(narrow), section("upsample", stride=2), route(-1, joined)]
        layers += [*turns(narrow, 2 * narrow, 6), *yolo(mask, ANCHORS_9)]
    return cfg(layers)


def yolov3_tiny() -> str:
    layers = []
    for filters in (16, 32, 64, 128, 256):
        layers += [conv(filters, 3), section("maxpool", size=2, stride=2)]
    layers += [conv(512, 3), section("maxpool", size=2, stride=1), conv(1024, 3), conv(256), conv(512, 3)]
    layers += yolo("3,4,5", ANCHORS_6)
    layers += [
        route(-4),
        conv(128),
        section("upsample", stride=2),
        route(-1, 8),
        conv(256, 3),
        *yolo("0,1,2", ANCHORS_6),
    ]
    return cfg(layers)


def yolov4_tiny() -> str:
    layers = [conv(32, 3, 2), conv(64, 3, 2)]
    for wide in (64, 128, 256):
        half = wide // 2
        layers += [conv(wide, 3), route(-1, groups=2, group_id=1), conv(half, 3), conv(half, 3), route(-1, -2)]
        layers += [conv(wide), route(-6, -1), section("maxpool", size=2, stride=2)]
    layers += [conv(512, 3), conv(256), conv(512, 3), *yolo("3,4,5", ANCHORS_6, scale_x_y=1.05)]
    layers += [route(-4), conv(128), section("upsample", stride=2), route(-1, 23), conv(256, 3)]
    return cfg([*layers, *yolo("0,1,2", ANCHORS_6, scale_x_y=1.05)])


def _partial(wide: int, half: int, narrow: int, blocks: int) -> list[str]:
    """A stage of the cross-stage partial network."""
    layers = [conv(wide, 3, 2, "mish"), conv(half, act="mish"), route(-2), conv(half, act="mish")]
    for _ in range(blocks):
        layers += [conv(narrow, act="mish"), conv(half, 3, act="mish")]
        layers.append(section("shortcut", **{"from": -3, "activation": "linear"}))
    return [*layers, conv(half, act="mish"), route(-1, -(3 * blocks + 4)), conv(wide, act="mish")]


def yolov4() -> str:
    layers = [conv(32, 3, act="mish"), *_partial(64, 64, 32, 1)]
    for wide, blocks in ((128, 2), (256, 8), (512, 8), (1024, 4)):
        layers += _partial(wide, wide // 2, wide // 2, blocks)
    layers += [*turns(512, 1024, 3), section("maxpool", size=5, stride=1), route(-2)]
    layers += [section("maxpool", size=9, stride=1), route(-4), section("maxpool", size=13, stride=1)]
    layers += [route(-1, -3, -5, -6), *turns(512, 1024, 3)]
    for narrow, joined in ((256, 85), (128, 54)):
        layers += [conv(narrow), section("upsample", stride=2), route(joined), conv(narrow), route(-1, -3)]
        layers += turns(narrow, 2 * narrow, 5)
    layers += [conv(256, 3), *yolo("0,1,2", ANCHORS_9_OF_4, scale_x_y=1.2)]
    for narrow, joined, mask, scale in ((256, -16, "3,4,5", 1.1), (512, -37, "6,7,8", 1.05)):
        layers += [route(-4), conv(narrow, 3, 2), route(-1, joined), *turns(narrow, 2 * narrow, 6)]
        layers += yolo(mask, ANCHORS_9_OF_4, scale_x_y=scale)
    return cfg(layers)


def small(activation: str = "leaky") -> str:
    """One of each layer, at two strides."""
    return cfg(
        [
            conv(8, 3, 2, activation), conv(8, 3, act="mish"),
            section("shortcut", **{"from": -2, "activation": "linear"}),
            section("maxpool", size=2, stride=2), section("maxpool", size=2, stride=1),
            route(-1, groups=2, group_id=1), section("dropout", probability=0.5), conv(16),
            *yolo("1,2", "4,4, 8,8, 16,16"),
            route(-3), section("upsample", stride=2), route(-1, 2), conv(8), *yolo("0,1", "4,4, 8,8, 16,16"),
        ]
    ).replace("filters=255", "filters=170")  # fmt: skip
