"""Stages beside the inference that take more than their share."""

from __future__ import annotations

from typing import Final

from hwprof.analysis.findings.facts import Facts, Finding

LEAST: Final = 0.1
"""Of an iteration."""

REMEDIES: Final = {
    "preprocess": "decode and resize in other processes (a DataLoader), or once",
    "load": "decode images in other processes (a DataLoader), or once",
    "read": "decode in another thread, ahead of the model, or a smaller video",
    "nms": "a higher --conf: fewer candidates; agnostic or batched NMS",
    "masks": "a higher --conf: fewer boxes, each of which has a mask",
    "postprocess": "a higher --conf: fewer candidates to decode",
    "save": "write results in another process, or not at all",
}

INNER: Final = ("nms", "masks")
"""Stages in ``postprocess``."""


def find(facts: Facts) -> Finding | None:
    """The largest of these stages, where it takes a share worth naming."""
    shares = {stage: facts.stages.get(stage, 0.0) for stage in REMEDIES}
    if max(shares[stage] for stage in INNER) >= 0.5 * shares["postprocess"]:
        del shares["postprocess"]  # one of its own stages is most of it
    stage = max(shares, key=lambda one: shares[one])
    if shares[stage] < LEAST:
        return None
    return Finding(
        rule="long_stage",
        title=f"the stage {stage} takes long beside the inference",
        evidence=f"{stage}, {shares[stage]:.1%} of an iteration",
        meaning="it runs on one thread, mostly in Python and OpenCV, while the other processors rest",
        remedy=REMEDIES[stage],
        gain_low=0.0,
        gain_high=shares[stage],
        stage=stage,
        gain_of="iteration",
    )
