"""What comes through the pipe, in whatever pieces, and past a signal."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwprof.run.manifest import WorkloadRecord
from hwprof.session.messages import Failed, Inbox, Message, Order, Phase, PhaseBegins, Step, encode
from hwprof.session.plan import PassPlan
from hwprof.workload.spec import WorkloadSpec


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    yield ends
    for end in ends:
        try:
            os.close(end)
        except OSError:
            continue


@given(st.lists(st.integers(1, 40), max_size=12))
def test_messages_come_whole_and_in_order_however_the_pipe_cuts_them(pieces: list[int]) -> None:
    sent: list[Message] = [PhaseBegins(Phase.MEASURING, 3), Step(), PhaseBegins(Phase.KEEPING), Step()]
    data = b"".join(encode(message) for message in sent)
    read_end, write_end = os.pipe()
    inbox, found = Inbox(read_end), []
    try:
        for size in pieces:
            os.write(write_end, data[:size])
            data = data[size:]
        os.write(write_end, data)
        os.close(write_end)
        while (message := inbox.next()) is not None:
            found.append(message)
    finally:
        os.close(read_end)
    assert found == sent


def test_a_message_that_comes_in_many_pieces_is_put_together_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """64 MiB in pieces of 4 KiB: copying what is there at every piece would take minutes."""
    message = Failed("x" * (64 << 20), None, 1, None)
    data, place = memoryview(encode(message)), 0

    def read(*_: int) -> bytes:
        nonlocal place
        place += 1 << 12
        return bytes(data[place - (1 << 12) : place])

    monkeypatch.setattr(os, "read", read)
    monkeypatch.setattr(Inbox, "_readable", lambda *_: True)
    begin = time.process_time()
    assert Inbox(0).next() == message
    assert time.process_time() - begin < 10


def test_half_a_message_of_a_worker_that_died_is_none(pipe: tuple[int, int]) -> None:
    os.write(pipe[1], encode(Step()) + b'{"type":"pha')
    os.close(pipe[1])
    inbox = Inbox(pipe[0])
    assert inbox.next() == Step()
    assert inbox.next() is None


@pytest.mark.parametrize(
    "garbage", [b"garbage\n", b"\xff\xfe\n", b"{}\n\n", b'{"type":"no such"}\n', b"[1]\n"], ids=ascii
)
def test_what_a_model_s_code_writes_to_the_pipe_is_passed_over(pipe: tuple[int, int], garbage: bytes) -> None:
    os.write(pipe[1], encode(Step()) + garbage + encode(PhaseBegins(Phase.IMPORTING)))
    os.close(pipe[1])
    inbox = Inbox(pipe[0])
    assert [inbox.next(), inbox.next(), inbox.next()] == [Step(), PhaseBegins(Phase.IMPORTING), None]


def test_ctrl_c_while_it_waits_loses_nothing(pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    inbox = Inbox(pipe[0])
    os.write(pipe[1], encode(PhaseBegins(Phase.IMPORTING))[:5])
    real, calls = select.select, []

    def interrupted(*arguments: Any) -> Any:
        calls.append(arguments)
        if len(calls) == 2:  # half a message was read
            raise KeyboardInterrupt
        return real(*arguments)

    monkeypatch.setattr(select, "select", interrupted)
    with pytest.raises(KeyboardInterrupt):
        inbox.next()
    os.write(pipe[1], encode(PhaseBegins(Phase.IMPORTING))[5:])
    assert inbox.next() == PhaseBegins(Phase.IMPORTING)


def test_it_looks_up_while_nobody_speaks(pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """A signal that another thread took is noticed only by Python code that runs."""
    waits = []

    def silent(*arguments: Any) -> Any:
        waits.append(arguments[3])
        if len(waits) == 3:
            os.write(pipe[1], encode(Step()))
            return arguments[:3]
        return [], [], []

    monkeypatch.setattr(select, "select", silent)
    assert Inbox(pipe[0]).next() == Step()
    assert len(waits) == 3 and max(waits) <= 1


def test_a_worker_that_has_ended_is_seen_though_somebody_holds_the_pipe(
    pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hwprof.session.messages.LOOK_UP_S", 0.01)
    inbox = Inbox(pipe[0], lambda: True)
    os.write(pipe[1], encode(Step()))
    assert inbox.next() == Step()
    assert inbox.next() is None


@pytest.mark.parametrize(("taken", "forwards"), [(None, None), (12, 12)])
def test_a_later_worker_takes_as_much_of_the_source_as_the_first(taken: int | None, forwards: int | None) -> None:
    plan = PassPlan(name="trace", iterations=5, warmup=1, in_process=(), external=())
    order = Order(workload=WorkloadSpec(model="yolov8n"), plan=plan, folder="", describe=False, save_to=None)
    assert order.after(None) == order
    built = WorkloadRecord(
        name="yolov8n", kind="yolo", weights="random", parameters=1, threads=1, batch=1, forwards=taken
    )
    assert order.after(built).workload == WorkloadSpec(model="yolov8n", forwards=forwards)
