"""What users are told to install is what the project is proved with."""

from __future__ import annotations

import re
from pathlib import Path

from hwprof import packages


def test_versions_are_those_of_the_constraints() -> None:
    constraints = (Path(__file__).parents[2] / "constraints.txt").read_text().split()
    for told in (packages.TORCH, packages.YOLO):
        pins = re.findall(r"\S+==\S+", told)
        assert pins and set(pins) <= set(constraints)
