"""Models whose iterations are short, and models whose threads are: what the report says of them adds up."""

from __future__ import annotations

from pathlib import Path

import pytest

from collectors.sampler.collector import SamplerCollector
from hwprof.report.document import builder
from hwprof.report.document.kernels import Kernels
from hwprof.report.document.threads import Threads
from tests.support.command import collect
from tests.support.document_parts import part
from tests.support.models.short import TASKS
from tests.support.requirements import missing, require_module

pytestmark = pytest.mark.alone

MODELS = "tests.support.models.short"


@pytest.fixture(scope="module", autouse=True)
def _needs() -> None:
    require_module("torch")


def test_threads_one_after_the_other_do_not_share_their_work(tmp_path: Path) -> None:
    """However long each takes to end: they are as good as one, of the two that were asked for."""
    available = SamplerCollector().availability()
    if not available.ok:
        missing(f"perf events ({available.reason})")
    arguments = ("--model", f"{MODELS}:in_turn", "--passes", "trace", "--iterations", "5", "--threads", "2")
    built = builder.build(collect(tmp_path, *arguments, "--collectors", "sampler"))
    sampled = part(built, Kernels)
    (layer,) = [one for one in sampled.layers if one.path == "0"]
    working = [one for one in layer.threads if one.busy_ns > layer.cpu_ns / (TASKS * sampled.iterations) / 2]
    assert len(working) >= TASKS, "then nothing would be shown"
    assert layer.threads_sharing == part(built, Threads).threads_sharing == 2
    assert layer.imbalance is not None and layer.imbalance > 0.8
    assert layer.efficiency is not None and layer.efficiency <= 0.5 + 0.05
