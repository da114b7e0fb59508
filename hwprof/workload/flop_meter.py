"""FLOPs of calls within calls, on whichever thread each of them runs."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Final, Self

from hwprof.workload.operator_flops import CountedFlops


@dataclass(frozen=True)
class Flops:
    """What a part of a forward did."""

    counted: int = 0
    uncounted: int = 0  # calls of operators that have others

    def __add__(self, other: Flops) -> Flops:
        return Flops(self.counted + other.counted, self.uncounted + other.uncounted)

    def __sub__(self, other: Flops) -> Flops:
        return Flops(self.counted - other.counted, self.uncounted - other.uncounted)

    @property
    def known(self) -> int | None:
        """The FLOPs; None where there were others."""
        return self.counted if not self.uncounted else None


@dataclass
class _Open:
    """A call that has not come to its end."""

    before: Flops
    below: Flops = field(default_factory=Flops)  # by the calls in it, on the same thread
    elsewhere: Flops = field(default_factory=Flops)  # by calls on other threads that began meanwhile


@dataclass
class _Thread:
    """The calls that are open on one thread, the innermost last."""

    mode: CountedFlops
    calls: list[_Open] = field(default_factory=list)

    def so_far(self) -> Flops:
        return Flops(self.mode.total, self.mode.uncounted)


class FlopMeter:
    """Counts while it is entered. torch's dispatch modes are a thread's own: a call on another thread than the one
    that entered gets one, and what it did is also done by the call that is open on that first thread."""

    def __init__(self, mode: Callable[[], CountedFlops]) -> None:
        self._mode: Final = mode
        self._home = _Thread(mode())
        self._threads = threading.local()
        self._threads.here = self._home
        self._adding = threading.Lock()

    def __enter__(self) -> Self:
        self._home.mode.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._home.mode.__exit__(kind, error, trace)

    def measured(self, call: Callable[[], Any]) -> tuple[Any, Flops, Flops]:
        """What the call gives, what it did, and what of that no ``measured`` call within it did."""
        here: _Thread | None = getattr(self._threads, "here", None)
        return self._on(here, call) if here is not None else self._elsewhere(call)

    def _elsewhere(self, call: Callable[[], Any]) -> tuple[Any, Flops, Flops]:
        """The outermost call of another thread."""
        around = self._home.calls[-1] if self._home.calls else None
        mode: AbstractContextManager[Any] = self._mode()
        self._threads.here = here = _Thread(mode)  # type: ignore[arg-type]  # torch's modes have no types
        try:
            with mode:
                output, done, own = self._on(here, call)
        finally:
            del self._threads.here
        if around is not None:
            with self._adding:
                around.elsewhere += done
        return output, done, own

    def _on(self, thread: _Thread, call: Callable[[], Any]) -> tuple[Any, Flops, Flops]:
        opened = _Open(thread.so_far())
        thread.calls.append(opened)
        try:
            output = call()
        finally:
            thread.calls.pop()
        here = thread.so_far() - opened.before
        if thread.calls:
            with self._adding:
                thread.calls[-1].below += here
                thread.calls[-1].elsewhere += opened.elsewhere
        return output, here + opened.elsewhere, here - opened.below
