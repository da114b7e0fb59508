"""Making a model without a checkpoint behave, in time, like a trained one.

Random weights alone falsify timings twice: activations that shrink from layer to layer end as denormal numbers, which
the processor handles in microcode, and a head that finds nothing leaves non-maximum suppression without work. So batch
normalisation gets the statistics of the real input, the head's biases are set such that a realistic number of boxes
passes the confidence threshold, and masks are about half of their boxes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import torch
from torch import nn
from torch.nn import functional

from hwprof.workload.detector import Detector

CANDIDATES_PER_IMAGE = 100
"""Boxes above the threshold before suppression: the order of what a trained detector has on a street scene."""

LIKELY_CLASS = 0.8
"""The typical probability of the best class, for heads that have objectness besides it."""

NORM_SHIFT = 1.0
"""What batch normalisation adds after normalising. It keeps SiLU near its linear range: around 0 a random network
amplifies the contrast between images from layer to layer, until one image has all the boxes and the others none."""

DISTANCE = 4.0
DISTANCE_SPREAD = 1.0
"""From a place to a side of its box, in strides: the mean, and the standard deviation."""

BRANCHES = ("", "one2one_")
"""Before the names of a head's convolutions: of its two branches."""

MOST_IMAGES = 8
"""How many images of the input the statistics come from."""


@torch.inference_mode()
def calibrate(detector: Detector, batches: Sequence[torch.Tensor], conf: float) -> None:
    """Sets batch-norm statistics and the head's last convolutions from real inputs (B, 3, H, W), before fusing."""
    inputs = [_large_enough(image, detector.stride) for batch in batches for image in torch.split(batch, 1)][
        :MOST_IMAGES
    ]
    calibrate_batch_norm(detector.module, [_half_size(image, detector.stride) for image in inputs])
    branches = _scoring_convolutions(detector)
    if not branches:  # of a classifier the classes are as likely as they are
        return
    seen = _inputs_of([convolution for branch in branches for convolution in branch], detector.module, inputs)
    threshold = min(max(conf, 0.001), 0.999)
    for branch in branches:
        candidates = CANDIDATES_PER_IMAGE * len(inputs) // len(branch)
        for convolution in branch:
            _level_images(convolution, seen[convolution])
            logits = torch.cat([_logits(convolution, image) for image in seen[convolution]])
            if detector.objectness:
                _set_objectness(convolution, logits, detector.head.na, threshold, candidates)
            else:
                _set_classes(convolution, logits, threshold, candidates)
    if hasattr(detector.head, "proto"):
        _level_masks(detector, inputs)
        if detector.head.reg_max == 1:  # what is put out is the distance itself, else that of a distribution
            _spread_boxes(detector, inputs)


def calibrate_batch_norm(model: nn.Module, inputs: Sequence[torch.Tensor]) -> None:
    """Gives every batch normalisation the mean and variance that its input has over these batches, and the shift."""
    norms = [module for module in model.modules() if isinstance(module, nn.BatchNorm2d)]
    momenta = [norm.momentum for norm in norms]
    for norm in norms:
        norm.reset_running_stats()
        norm.bias.fill_(NORM_SHIFT)
        norm.momentum = None  # the plain average over the batches
        norm.train()
    for batch in inputs:
        model(batch)
    for norm, momentum in zip(norms, momenta, strict=True):
        norm.momentum = momentum
        norm.eval()


def _large_enough(batch: torch.Tensor, stride: int) -> torch.Tensor:
    """The batch, or a larger one where the deepest map would be a single point, which has no variance."""
    smallest = min(batch.shape[-2:])
    if smallest >= 2 * stride:
        return batch
    return functional.interpolate(batch, scale_factor=math.ceil(2 * stride / smallest), mode="nearest")


def _half_size(image: torch.Tensor, stride: int) -> torch.Tensor:
    """Every other pixel, so far as the model can take it: statistics are much the same for a quarter of the work."""
    sides = [max(2 * stride, stride * round(side / (2 * stride))) for side in image.shape[-2:]]
    return functional.interpolate(image, size=sides, mode="nearest")


def _scoring_convolutions(detector: Detector) -> list[list[nn.Conv2d]]:
    """The convolutions that put out scores, one a stride; a head with two branches has two such lists, one without
    places has none."""
    return [list(detector.head.m)] if detector.objectness else _last_of_branches(detector, "cv3")


def _last_of_branches(detector: Detector, name: str) -> list[list[nn.Conv2d]]:
    """The last convolutions of that name, one a stride, of each branch that there is."""
    branches = [getattr(detector.head, f"{prefix}{name}", None) for prefix in BRANCHES]
    return [[level[-1] for level in branch] for branch in branches if branch is not None]


def _inputs_of(
    convolutions: Sequence[nn.Conv2d], model: nn.Module, inputs: Sequence[torch.Tensor]
) -> dict[nn.Conv2d, list[torch.Tensor]]:
    """What each convolution gets to see of each image, as (H·W, C)."""
    seen: dict[nn.Conv2d, list[torch.Tensor]] = {convolution: [] for convolution in convolutions}

    def keep(module: nn.Module, arguments: tuple[torch.Tensor, ...]) -> None:
        assert isinstance(module, nn.Conv2d)
        seen[module].append(arguments[0][0].flatten(1).T)

    handles = [convolution.register_forward_pre_hook(keep) for convolution in convolutions]
    try:
        for image in inputs:
            model(image)
    finally:
        for handle in handles:
            handle.remove()
    return seen


def _level_images(convolution: nn.Conv2d, features: Sequence[torch.Tensor]) -> None:
    """Makes a 1x1 convolution blind to what tells the images' means apart, so that they share the boxes evenly."""
    means = torch.stack([image.mean(dim=0) for image in features])
    _, strengths, directions = torch.linalg.svd(means - means.mean(dim=0), full_matrices=False)
    separating = directions[strengths > 1e-4 * means.norm()]
    convolution.weight -= (convolution.weight.flatten(1) @ separating.T @ separating).view_as(convolution.weight)


def _logits(convolution: nn.Conv2d, features: torch.Tensor) -> torch.Tensor:
    """A 1x1 convolution's output at each place, (H·W, channels)."""
    return functional.linear(features, convolution.weight.flatten(1), convolution.bias)


def _set_classes(convolution: nn.Conv2d, logits: torch.Tensor, threshold: float, candidates: int) -> None:
    """For heads whose score is the class probability alone: the best class passes at as many places as wanted."""
    assert convolution.bias is not None
    prior = _class_prior(logits.shape[1])
    best = (logits + prior).amax(dim=1)
    convolution.bias += prior + _logit(threshold) - _highest(best, candidates)


def _set_objectness(
    convolution: nn.Conv2d, logits: torch.Tensor, anchors: int, threshold: float, candidates: int
) -> None:
    """For heads whose score is objectness times class probability: the best class is made likely, then the objectness
    such that as many anchors pass as wanted."""
    assert convolution.bias is not None
    bias = convolution.bias.view(anchors, -1)
    logits = logits.reshape(-1, bias.shape[1])
    prior = _class_prior(bias.shape[1] - 5)
    best = (logits[:, 5:] + prior).amax(dim=1)
    class_shift = _logit(max(LIKELY_CLASS, (1.0 + threshold) / 2)) - float(best.median())
    needed = torch.logit((threshold / (best + class_shift).sigmoid()).clamp(max=1.0))  # objectness that would do
    bias[:, 4] -= _highest(logits[:, 4] - needed, candidates)
    bias[:, 5:] += prior + class_shift


def _level_masks(detector: Detector, inputs: Sequence[torch.Tensor]) -> None:
    """Makes the coefficients of masks blind to the mean of the prototypes, which are positive nearly everywhere: else
    most masks have all pixels of their box or none, and boxes without a mask are left out."""
    means: list[torch.Tensor] = []
    handle = detector.head.proto.register_forward_hook(lambda *call: means.append(call[2].mean(dim=(0, 2, 3))))
    try:
        for image in inputs:
            detector.module(image)
    finally:
        handle.remove()
    mean = functional.normalize(torch.stack(means).mean(dim=0), dim=0)
    for convolution in itertools.chain(*_last_of_branches(detector, "cv4")):
        assert convolution.bias is not None
        weight = convolution.weight.flatten(1)
        convolution.weight -= torch.outer(mean, mean @ weight).view_as(convolution.weight)
        convolution.bias -= mean * (mean @ convolution.bias)


def _spread_boxes(detector: Detector, inputs: Sequence[torch.Tensor]) -> None:
    """Makes the distances from a place to the sides of its box positive: no mask lies in a box turned inside out."""
    convolutions = list(itertools.chain(*_last_of_branches(detector, "cv2")))
    seen = _inputs_of(convolutions, detector.module, inputs)
    for convolution in convolutions:
        assert convolution.bias is not None
        distances = torch.cat([_logits(convolution, image) for image in seen[convolution]])
        scale = DISTANCE_SPREAD / distances.std(dim=0).clamp(min=1e-6)
        convolution.weight *= scale.view(-1, 1, 1, 1)
        convolution.bias.copy_((convolution.bias - distances.mean(dim=0)) * scale + DISTANCE)


def _class_prior(classes: int) -> torch.Tensor:
    """Log of Zipf's law: in photographs a few classes are most of the objects."""
    return -torch.arange(1, classes + 1).float().log()


def _highest(values: torch.Tensor, wanted: int) -> float:
    """The value that ``wanted`` of ``values`` exceed, though no more than a tenth of them."""
    count = max(1, min(wanted, values.numel() // 10))
    highest = values.topk(min(count + 1, values.numel())).values
    return float(highest[-2:].mean())  # between the last that passes and the first that does not


def _logit(probability: float) -> float:
    return math.log(probability / (1.0 - probability))
