"""Threads of hwprof's own beside the model's code, which may have replaced ``threading.Thread`` or parts of it by then:
one that is started with that begins nothing, and is waited for for ever. What these threads need is bound when this
module is imported, before that code runs."""

from __future__ import annotations

from _thread import allocate_lock, start_new_thread
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import ExitStack, suppress
from typing import Generic, TypeVar

Given = TypeVar("Given")
Item = TypeVar("Item")


class HelperThread(Generic[Given]):
    """Does some work from now on. It keeps no process from ending."""

    def __init__(self, work: Callable[[], Given]) -> None:
        """Raises ``RuntimeError`` where no thread can be had."""
        self._work = work
        self._given: list[Given] = []
        self._failure: BaseException | None = None
        self._at_work = allocate_lock()
        self._at_work.acquire()
        start_new_thread(self._run, ())

    def has_ended(self) -> bool:
        """Whether the work is done, or has failed."""
        return not self._at_work.locked()

    def result(self) -> Given:
        """What the work gives, when it is done. Raises what it raised. May be called again."""
        with self._at_work:
            if self._failure is not None:
                raise self._failure
            return self._given[0]

    def _run(self) -> None:
        try:
            self._given.append(self._work())
        except BaseException as error:
            self._failure = error
        finally:
            self._at_work.release()


class Handover(Generic[Item]):
    """From one thread to another: the next item lies ready while that one is busy with the one before."""

    def __init__(self) -> None:
        self._items: deque[Item] = deque()
        self._free, self._filled = allocate_lock(), allocate_lock()  # each is held by nobody in particular
        self._filled.acquire()

    def put(self, item: Item, limit_s: float) -> bool:
        """Whether the one before was taken within that time: else this one is not there."""
        if not self._free.acquire(timeout=limit_s):
            return False
        self._items.append(item)
        self._filled.release()
        return True

    def take(self) -> Item:
        """Waits for the next one."""
        self._filled.acquire()
        item = self._items.popleft()
        self._free.release()
        return item


def each(work: Callable[[Item], Given], items: Iterable[Item], threads: int) -> list[Given]:
    """What ``work`` gives for each of them, in their order. So many threads do it, this one among them; fewer where no
    more can be had. Raises what any of them raised."""
    waiting = deque(enumerate(items))
    given: dict[int, Given] = {}

    def take_part() -> None:
        try:
            while True:
                try:
                    number, item = waiting.popleft()
                except IndexError:
                    return
                given[number] = work(item)
        except BaseException:
            waiting.clear()  # the others need not go on
            raise

    with ExitStack() as helpers:
        with suppress(RuntimeError):  # this one does what others would have done
            for _ in range(min(threads, len(waiting)) - 1):
                helpers.callback(HelperThread(take_part).result)
        take_part()
    return [given[number] for number in sorted(given)]
