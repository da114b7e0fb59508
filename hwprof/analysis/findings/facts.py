"""What rules look at, and what they find."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from hwprof.analysis.owners import INFERENCE


class Share(NamedTuple):
    """Of a time, with its 95% interval."""

    value: float
    low: float
    high: float


NOTHING = Share(0.0, 0.0, 0.0)


class Layer(NamedTuple):
    """A layer's part of the inference's elapsed time, and the parts of that."""

    path: str
    of_whole: float
    parts: Mapping[str, float]
    bound: str | None = None

    def lost(self, part: str) -> float:
        """Of the inference's time: what this layer has in the part."""
        return self.of_whole * self.parts.get(part, 0.0)


class Kernel(NamedTuple):
    """Sampled code: its share of the inference's processor time."""

    name: str
    library: str
    share: Share


@dataclass(frozen=True)
class Facts:
    """Of one run. Shares are of the inference's elapsed time, unless it is said otherwise."""

    parts: Mapping[str, Share] = field(default_factory=dict)  # the time budget's
    layers: Sequence[Layer] = ()
    kernels: Sequence[Kernel] = ()
    stages: Mapping[str, float] = field(default_factory=dict)  # of an iteration
    anew: Sequence[str] = ()  # layers that get their memory anew at each call
    faults: float | None = None  # page faults of an inference
    malloc: str | None = None  # who gives memory: glibc, jemalloc, …
    vendor: str = ""
    threads: int = 1
    processors: int = 1  # that the workload might use
    convolutions: int = 0  # layers that convolve

    def part(self, name: str) -> Share:
        """Of the time budget; nothing where there is none."""
        return self.parts.get(name, NOTHING)

    def most_in(self, part: str, number: int = 3) -> list[str]:
        """The layers that lose most to it, in order."""
        ordered = sorted(self.layers, key=lambda layer: -layer.lost(part))
        return [layer.path for layer in ordered[:number] if layer.lost(part) > 0]


class Finding(NamedTuple):
    """A cause of lost time."""

    rule: str
    title: str  # "layout changes around convolutions"
    evidence: str  # "8.0% of the time ±0.6, most in model.1.conv, …"
    meaning: str
    remedy: str  # what to type
    gain_low: float  # of the inference's time, that could be won: an interval, no promise
    gain_high: float
    layers: Sequence[str] = ()
    stage: str | None = None  # that it is about; None: the inference, or layers of it
    gain_of: str = INFERENCE  # or "iteration"
    remedies: Sequence[str] = ()  # those that hwprof can try (remedies/remedies.toml)


def percent(share: Share) -> str:
    """``8.0% (7.2 to 8.9%)``"""
    return f"{share.value:.1%} ({100 * share.low:.1f} to {share.high:.1%})"


def named(layers: Sequence[str]) -> str:
    """``, most in a, b, c``; nothing where there is none."""
    return f", most in {', '.join(layers)}" if layers else ""
