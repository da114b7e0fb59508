"""FLOPs of calls within calls."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import torch

from hwprof.workload.flop_meter import FlopMeter, Flops
from hwprof.workload.operator_flops import CountedFlops

ONE = torch.ones(4, 4)
PRODUCT = 2 * 4**3


def flops(products: int) -> Flops:
    """Of so many of FP32."""
    return Flops(Counter(float32=products * PRODUCT))


def on_another_thread(work: Callable[[], None]) -> None:
    helper = threading.Thread(target=work)
    helper.start()
    helper.join()


def test_a_call_lies_in_one_of_the_same_while_that_is_open_on_its_thread() -> None:
    with FlopMeter(CountedFlops) as meter:
        meter.begin("a")
        meter.begin("b")
        assert meter.is_within("a") and meter.is_within("b")
        found: list[bool] = []
        on_another_thread(lambda: found.append(meter.is_within("a")))
        meter.end()
        assert meter.is_within("a") and not meter.is_within("b")
        meter.abandon()
        assert not meter.is_within("a") and found == [False]


def test_a_call_that_fails_is_its_callers_own_work() -> None:
    with FlopMeter(CountedFlops) as meter:
        meter.begin()
        meter.begin()
        ONE @ ONE
        meter.abandon()
        meter.begin()
        ONE @ ONE
        assert meter.end() == (flops(1), flops(1))
        assert meter.end() == (flops(2), flops(1))


def test_a_call_that_fails_on_another_thread_leaves_that_one_as_it_was() -> None:
    found: list[tuple[Flops, Flops]] = []

    def elsewhere() -> None:
        meter.begin()
        meter.abandon()
        meter.begin()
        ONE @ ONE
        found.append(meter.end())

    with FlopMeter(CountedFlops) as meter:
        meter.begin()
        on_another_thread(elsewhere)
        assert meter.end() == (flops(1), Flops())
    assert found == [(flops(1), flops(1))]


def test_what_a_failed_call_had_called_is_not_its_callers_own() -> None:
    with FlopMeter(CountedFlops) as meter:
        meter.begin()
        meter.begin()
        meter.begin()
        ONE @ ONE
        assert meter.end() == (flops(1), flops(1))
        meter.abandon()
        assert meter.end() == (flops(1), Flops())


def test_a_call_that_fails_on_another_thread_did_its_work_all_the_same() -> None:
    def elsewhere() -> None:
        meter.begin()
        ONE @ ONE
        meter.abandon()

    with FlopMeter(CountedFlops) as meter:
        meter.begin()
        on_another_thread(elsewhere)
        assert meter.end() == (flops(1), Flops())


def product() -> None:
    ONE @ ONE


def fails() -> None:
    ONE @ ONE
    raise ValueError("after its work")


def test_what_threads_do_is_done_by_the_call_that_is_open_meanwhile() -> None:
    """They have no mode of torch's: of a layer that hands its work to a thread 0 were counted."""
    run = threading.Thread.run
    with FlopMeter(CountedFlops) as meter:
        meter.begin()
        on_another_thread(product)
        ONE @ ONE
        assert meter.end() == (flops(2), flops(1))
        meter.begin()
        assert meter.end() == (Flops(), Flops())
    assert threading.Thread.run is run
    on_another_thread(product)


def test_what_a_pool_is_given_is_done_by_the_call_that_gives_it() -> None:
    with ThreadPoolExecutor(2) as pool:
        pool.submit(product).result()  # its thread is there before
        with FlopMeter(CountedFlops) as meter:
            for number in (1, 3):
                meter.begin()
                for future in [pool.submit(product) for _ in range(number)]:
                    future.result()
                assert meter.end() == (flops(number), Flops())
            meter.begin()
            assert isinstance(pool.submit(fails).exception(), ValueError)
            assert meter.end() == (flops(1), Flops())
        pool.submit(product).result()
