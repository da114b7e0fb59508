from __future__ import annotations

import pytest

from hwprof.analysis.iterations import select
from hwprof.analysis.throughput import Throughput, throughput
from hwprof.unavailable import Unavailable
from tests.support.small_tables import record, spans

ITERATIONS = {0: (100, 40), 1: (200, 60), 2: (300, 140), 3: (5000, 4000)}
"""How long each takes, and the two calls of the model in it, in ns; the last is warm-up."""


def _found(whole: str) -> Throughput | Unavailable:
    rows = []
    for number, (long, inference) in ITERATIONS.items():
        begin, half = 1000 * number, inference // 2
        rows += [
            (10 * number, None, number, "iteration", f"iteration {number}", begin, begin + long),
            (10 * number + 1, 10 * number, number, "stage", "load", begin, begin + 5),
            (10 * number + 2, 10 * number, number, "stage", whole, begin + 5, begin + 5 + half),
            (10 * number + 3, 10 * number, number, "stage", whole, begin + 50 + half, begin + 50 + inference),
        ]
    passed = record([(number, number > 2, None, False) for number in ITERATIONS], [])
    return throughput(spans(rows), select(passed.iterations), 2)


def test_images_over_the_medians() -> None:
    found = _found("inference")
    assert isinstance(found, Throughput)
    assert (found.images, found.inference_ns, found.iteration_ns) == (2, 60.0, 200.0)
    assert (found.inference_per_s, found.end_to_end_per_s) == pytest.approx((2 / 60e-9, 2 / 200e-9))


def test_without_the_stage_there_is_no_rate_of_it() -> None:
    assert isinstance(_found("forward"), Unavailable)
