"""FLOPs of calls within calls, on whichever thread each of them runs."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import thread as thread_pools
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Final, Self

from hwprof.workload.operator_flops import CountedFlops

_PlainThread: Any = threading.Thread
_Pool: Any = ThreadPoolExecutor  # Any: methods of both are replaced for a while


@dataclass(frozen=True)
class Flops:
    """What a part of a forward did."""

    by_type: Counter[str] = field(default_factory=Counter)  # "float32", "bfloat16", …
    uncounted: int = 0  # calls of operators that have others

    def __add__(self, other: Flops) -> Flops:
        return Flops(self.by_type + other.by_type, self.uncounted + other.uncounted)

    def __sub__(self, other: Flops) -> Flops:
        return Flops(self.by_type - other.by_type, self.uncounted - other.uncounted)

    @property
    def known(self) -> int | None:
        """The FLOPs; None where there were others."""
        return self.by_type.total() if not self.uncounted else None


@dataclass
class _Open:
    """A call that has not come to its end."""

    before: Flops
    of: object
    below: Flops = field(default_factory=Flops)  # by the calls in it, on the same thread
    elsewhere: Flops = field(default_factory=Flops)  # by calls on other threads that began meanwhile


@dataclass
class _Thread:
    """The calls that are open on one thread, the innermost last."""

    mode: CountedFlops
    around: _Open | None = None  # on the first thread, when the outermost call began
    calls: list[_Open] = field(default_factory=list)

    def so_far(self) -> Flops:
        return Flops(self.mode.by_type.copy(), self.mode.uncounted)


class FlopMeter:
    """Counts while it is entered. torch's dispatch modes are a thread's own: a call on another thread than the one
    that entered gets one, and what it did is also done by the call that is open on that first thread. So does what a
    thread runs that is started meanwhile, and what a pool of threads is given to run."""

    def __init__(self, mode: Callable[[], CountedFlops]) -> None:
        self._mode: Final = mode
        self._home = _Thread(mode())
        self._threads = threading.local()
        self._threads.here = self._home
        self._adding = threading.Lock()

    def __enter__(self) -> Self:
        self._run, self._submit = _PlainThread.run, _Pool.submit
        pool: Any = thread_pools._worker  # what a pool's thread runs is what others give it

        def run(thread: Any) -> None:
            (self._run if getattr(thread, "_target", None) is pool else self._counted(self._run))(thread)

        def submit(executor: Any, work: Callable[..., Any], /, *arguments: Any, **keywords: Any) -> Any:
            return self._submit(executor, self._counted(work), *arguments, **keywords)

        _PlainThread.run, _Pool.submit = run, submit
        self._home.mode.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._home.mode.__exit__(kind, error, trace)
        _PlainThread.run, _Pool.submit = self._run, self._submit

    def _counted(self, work: Callable[..., Any]) -> Callable[..., Any]:
        """As a call of its own, on the thread that does it."""

        def counted(*arguments: Any, **keywords: Any) -> Any:
            self.begin()
            try:
                given = work(*arguments, **keywords)
            except BaseException:
                self.abandon()
                raise
            self.end()
            return given

        return counted

    def begin(self, of: object = None) -> None:
        """A call begins on this thread, of a module or whatever else; ``end`` or ``abandon`` must follow there."""
        here: _Thread | None = getattr(self._threads, "here", None)
        if here is None:
            here = self._threads.here = _Thread(self._mode(), around=self._home.calls[-1] if self._home.calls else None)
            here.mode.__enter__()
        here.calls.append(_Open(here.so_far(), of))

    def end(self) -> tuple[Flops, Flops]:
        """What the call that began last on this thread did, and what of that no other call within it did."""
        thread: _Thread = self._threads.here
        closed = thread.calls.pop()
        here = thread.so_far() - closed.before
        with self._adding:
            done = here + closed.elsewhere
            if thread.calls:
                thread.calls[-1].below += here
                thread.calls[-1].elsewhere += closed.elsewhere
            elif thread.around is not None:
                thread.around.elsewhere += done
        self._leave(thread)
        return done, here - closed.below

    def is_within(self, of: object) -> bool:
        """Whether a call of it is open on this thread."""
        here: _Thread | None = getattr(self._threads, "here", None)
        return here is not None and any(one.of is of for one in here.calls)

    def abandon(self) -> None:
        """The call that began last on this thread failed: what it did is its caller's own, but for what calls within it
        did that came to their end."""
        thread: _Thread = self._threads.here
        failed = thread.calls.pop()
        with self._adding:
            if thread.calls:
                thread.calls[-1].below += failed.below
                thread.calls[-1].elsewhere += failed.elsewhere
            elif thread.around is not None:
                thread.around.elsewhere += thread.so_far() - failed.before + failed.elsewhere
        self._leave(thread)

    def _leave(self, thread: _Thread) -> None:
        """Another thread's mode ends with its outermost call."""
        if thread is not self._home and not thread.calls:
            del self._threads.here
            thread.mode.__exit__(None, None, None)
