"""From what the recorder noted to the rows of the table ``spans``: order, parents, and the number of each call."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Final, overload

import numpy as np
from numpy.typing import NDArray

from hwprof.collector.contract import CountedSpan

if TYPE_CHECKING:  # the process that is measured has no threads of a table library in it
    import polars as pl

    from hwprof.run.schema import SpanKind

Integers = NDArray[np.int64]

NO_EDGE: Final = -1

CONTINUES: Final = -2
"""In the place of a layer's first edge, where none was read: it is another part of the call before."""

NAME, ITERATION, WARMUP, THREAD, BEGIN, END, BEGIN_EDGE, END_EDGE = range(8)
"""The columns of spans."""

AT_ONCE: Final = 65_536
"""Spans that are numbers of Python at a time."""


@dataclass(frozen=True, slots=True)
class Record:
    """One finished span; edges are ``NO_EDGE`` where no counter was read."""

    kind: SpanKind
    path: str
    iteration: int
    warmup: bool
    thread: int  # the kernel's number of it
    begin_ns: int
    end_ns: int
    begin_edge: int
    end_edge: int


class Records:
    """Finished spans above layers, in a fourth of the memory that as many objects take: in an hour there are hundreds
    of thousands. The path of an iteration is its number's."""

    _FIELDS: Final = 8  # kind and path are one

    def __init__(self) -> None:
        self._numbers = array("q")
        self._names: dict[tuple[SpanKind, str], int] = {}  # of kind and path

    def __len__(self) -> int:
        return len(self._numbers) // self._FIELDS

    def append(self, kind: SpanKind, path: str, iteration: int, warmup: bool, *numbers: int) -> None:
        """``numbers``: the other fields of ``Record``, in their order."""
        name = self._names.setdefault((kind, path), len(self._names))
        self._numbers.extend((name, iteration, warmup, *numbers))

    @property
    def names(self) -> list[tuple[SpanKind, str]]:
        """Kind and path of each number in the first column."""
        return list(self._names)

    def iterations(self) -> Integers:
        """Number, whether it warms up, begin and end of each."""
        number = self._names.get(("iteration", ""), NO_EDGE)
        rows = self.columns()
        found: Integers = rows[rows[:, NAME] == number][:, [ITERATION, WARMUP, BEGIN, END]]
        return found

    def columns(self) -> Integers:
        """A row a span: the number of its name, and the other fields of ``Record``."""
        return np.array(self._numbers, dtype=np.int64).reshape(-1, self._FIELDS)


class LayerCalls:
    """The calls of layers of one iteration, in a fifth of the memory that their records take: of an hour there are
    hundreds of thousands."""

    _FIELDS: Final = 6

    def __init__(self, iteration: int, *, warmup: bool, calls: Iterable[tuple[int, int, int, int, int, int]]) -> None:
        """``calls``, in the order in which they ended: the path's number, begin, end, both edges, and the thread."""
        self.iteration = iteration
        self._warmup = warmup
        self._numbers = array("q", chain.from_iterable(calls))

    def __len__(self) -> int:
        return len(self._numbers) // self._FIELDS

    def records(self, paths: Sequence[str]) -> Iterator[Record]:
        """Of all of them."""
        numbers = iter(self._numbers)
        for path, begin, end, begin_edge, end_edge, thread in zip(*[numbers] * self._FIELDS, strict=True):
            yield Record("layer", paths[path], self.iteration, self._warmup, thread, begin, end, begin_edge, end_edge)

    def threads(self) -> set[int]:
        """From which they were called."""
        return set(self._numbers[self._FIELDS - 1 :: self._FIELDS])

    def columns(self, first: int) -> Integers:
        """As those of ``Records``; names are numbered from ``first`` on."""
        path, *others, thread = np.array(self._numbers, dtype=np.int64).reshape(-1, self._FIELDS).T
        same = (np.full(len(path), value) for value in (self.iteration, self._warmup))
        return np.column_stack((path + first, *same, thread, *others))


class SpanColumns:
    """All spans of a pass, by begin, the outer one of equal ones first: arrays, of which hundreds of thousands of spans
    take some megabytes."""

    def __init__(self, records: Records, calls: Sequence[LayerCalls], paths: Sequence[str]) -> None:
        """``paths``: those of the numbers in ``calls``."""
        names = records.names
        self._names = [*names, *(("layer", path) for path in paths)]
        rows = np.concatenate([records.columns(), *(call.columns(len(names)) for call in calls)])
        # A parent ends after its children and is recorded after them: of equal spans the later record is the outer one.
        # Layers, which are brought in after all else of their iteration, lie within it all the same.
        is_layer = rows[:, NAME] >= len(names)
        order = np.lexsort((-np.arange(len(rows)), is_layer, -rows[:, END], rows[:, BEGIN]))
        self._rows = rows[order]

    def __len__(self) -> int:
        return len(self._rows)

    def counted(self) -> CountedSpans:
        """Those between two edges at which counters were read."""
        rows = np.flatnonzero(self._rows[:, BEGIN_EDGE] >= 0)
        return CountedSpans(np.column_stack((rows, self._rows[rows][:, [ITERATION, BEGIN_EDGE, END_EDGE]])))

    def table(self, pid: int) -> pl.DataFrame:
        """The ``spans`` rows, without ``pass``."""
        import polars as pl

        name, iteration, warmup, thread, begin, end = (
            pl.Series(self._rows[:, field]) for field in (NAME, ITERATION, WARMUP, THREAD, BEGIN, END)
        )
        kinds, paths = (pl.Series([one[part] for one in self._names], dtype=pl.String) for part in (0, 1))
        found = pl.DataFrame(
            {
                "iteration": iteration,
                "warmup": warmup.cast(pl.Boolean),
                "span": pl.Series(range(len(self)), dtype=pl.Int64),
                "parent": pl.Series(parents(self._rows[:, THREAD], self._rows[:, END])),
                "pid": pl.Series([pid], dtype=pl.Int32).new_from_index(0, len(self)),
                "tid": thread,
                "kind": kinds.gather(name),
                "path": paths.gather(name),
                "begin_ns": begin,
                "end_ns": end,
            }
        )
        begins = pl.Series("begins", self._rows[:, BEGIN_EDGE] != CONTINUES)
        of_layer, number = pl.col("kind") == "layer", pl.col("begins").cast(pl.Int32).cum_sum() - 1
        return (
            found.with_columns(begins)
            .with_columns(
                parent=pl.when(pl.col("parent") >= 0).then("parent"),
                path=pl.when(pl.col("kind") == "iteration")
                .then(pl.format("iteration {}", "iteration"))
                .otherwise("path"),
                call=pl.when(of_layer).then(number.over("iteration", "kind", "path")),
            )
            .drop("begins")
        )


class CountedSpans(Sequence[CountedSpan]):
    """They are made when they are asked for; ``span`` is the row's number in the table."""

    def __init__(self, rows: Integers) -> None:
        """``rows``: the fields of each."""
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> CountedSpan: ...
    @overload
    def __getitem__(self, index: slice) -> list[CountedSpan]: ...
    def __getitem__(self, index: int | slice) -> CountedSpan | list[CountedSpan]:
        if isinstance(index, slice):
            return [CountedSpan(*row) for row in self._rows[index].tolist()]
        return CountedSpan(*self._rows[index].tolist())

    @property
    def numbers(self) -> Integers:
        """Their rows in the table."""
        return self._rows[:, 0]

    @property
    def iterations(self) -> Integers:
        """Of each."""
        return self._rows[:, 1]

    @property
    def edges(self) -> Integers:
        """First and last of each."""
        return self._rows[:, 2:]


def parents(threads: Integers, ends: Integers) -> Integers:
    """For each span, in order of begin with the outer one first: the position of the innermost span of the same thread
    that encloses it, or -1."""
    open_spans: dict[int, list[tuple[int, int]]] = {}  # position and end
    result = array("q")
    for first in range(0, len(threads), AT_ONCE):
        some = (column[first : first + AT_ONCE].tolist() for column in (threads, ends))
        for number, (thread, end) in enumerate(zip(*some, strict=True), first):
            stack = open_spans.setdefault(thread, [])
            while stack and stack[-1][1] < end:
                stack.pop()
            result.append(stack[-1][0] if stack else -1)
            stack.append((number, end))
    return np.array(result, dtype=np.int64)
