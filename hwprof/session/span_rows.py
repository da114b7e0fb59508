"""From what the recorder noted to the rows of the table ``spans``: order, parents, and the number of each call."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:  # the process that is measured has no threads of a table library in it
    import polars as pl

    from hwprof.run.schema import SpanKind

NO_EDGE: Final = -1


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

    def __iter__(self) -> Iterator[Record]:
        names = list(self._names)
        numbers = iter(self._numbers)
        for name, iteration, warmup, *others in zip(*[numbers] * self._FIELDS, strict=True):
            kind, path = names[name]
            yield Record(
                kind, f"iteration {iteration}" if kind == "iteration" else path, iteration, bool(warmup), *others
            )


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


def in_order(records: Iterable[Record]) -> list[Record]:
    """By begin, the outer one of equal ones first."""

    # A parent ends after its children and is recorded after them: of equal spans the later record is the outer one.
    # Layers, which are brought in after all else of their iteration, lie within it all the same.
    def place(numbered: tuple[int, Record]) -> tuple[int, int, bool, int]:
        number, record = numbered
        return record.begin_ns, -record.end_ns, record.kind == "layer", -number

    return [record for _, record in sorted(enumerate(records), key=place)]


def span_rows(records: Sequence[Record], pid: int) -> pl.DataFrame:
    """The ``spans`` rows of ordered records, without ``pass``."""
    import polars as pl

    return pl.DataFrame(
        {
            "iteration": [record.iteration for record in records],
            "warmup": [record.warmup for record in records],
            "span": range(len(records)),
            "parent": parents([(record.thread, record.begin_ns, record.end_ns) for record in records]),
            "pid": pid,
            "tid": [record.thread for record in records],
            "kind": [record.kind for record in records],
            "path": [record.path for record in records],
            "begin_ns": [record.begin_ns for record in records],
            "end_ns": [record.end_ns for record in records],
            "call": pl.Series(calls(records), dtype=pl.Int32),
        },
        schema_overrides={"parent": pl.Int64, "span": pl.Int64, "pid": pl.Int32},
    )


def calls(records: Sequence[Record]) -> list[int | None]:
    """For each layer, which call of its path it is within its iteration; None for other kinds."""
    seen: Counter[tuple[int, str]] = Counter()
    result: list[int | None] = []
    for record in records:
        key = (record.iteration, record.path)
        result.append(seen[key] if record.kind == "layer" else None)
        seen[key] += record.kind == "layer"
    return result


def parents(spans: Sequence[tuple[int, int, int]]) -> list[int | None]:
    """For each span (thread, begin, end), in order of begin with the outer one first: the position of the innermost
    span of the same thread that encloses it."""
    open_spans: dict[int, list[int]] = {}
    result: list[int | None] = []
    for number, (thread, _, end) in enumerate(spans):
        stack = open_spans.setdefault(thread, [])
        while stack and spans[stack[-1]][2] < end:
            stack.pop()
        result.append(stack[-1] if stack else None)
        stack.append(number)
    return result
