"""Callgrind's output: what was recorded of a program whose counts arithmetic knows, and whatever the format allows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.callgrind.profile import NO_FILE, Function, Part, ProfileError, parts, read

RECORDED = Path(__file__).parents[2] / "fixtures" / "callgrind" / "parts.out"
ROUNDS = (1 << 18) // 64  # of the loop in the first call of fill
IN_LOOP, AROUND_LOOP = 6, 6  # instructions of fill


@pytest.fixture(scope="module")
def recorded() -> list[Part]:
    return list(read(RECORDED))


def cost(part: Part, name: str, event: str = "Ir") -> int:
    return sum(amounts[part.events.index(event)] for function, amounts in part.costs.items() if function.name == name)


def test_the_parts_of_a_recorded_profile_are_its_dumps(recorded: list[Part]) -> None:
    assert [part.number for part in recorded] == [1, 2, 3]
    assert {part.events for part in recorded} == {
        ("Ir", "Dr", "Dw", "I1mr", "D1mr", "D1mw", "ILmr", "DLmr", "DLmw"),
    }
    assert recorded[1].total == [24587, 1, 4097, 0, 1, 4095, 0, 0, 4095]


def test_a_loop_of_known_length_costs_what_it_must(recorded: list[Part]) -> None:
    second = recorded[1]
    assert cost(second, "fill") == ROUNDS * IN_LOOP + AROUND_LOOP
    assert cost(second, "fill", "Dw") == ROUNDS
    assert cost(second, "fill", "D1mw") == ROUNDS - 1, "malloc's header has brought the first line"
    assert cost(recorded[2], "fill") == (1 << 12) // 64 * IN_LOOP + AROUND_LOOP


def test_a_recursion_is_one_function_and_calls_that_go_on_over_a_dump_are_nobodys_own(recorded: list[Part]) -> None:
    assert cost(recorded[0], "depth") == 184, "what main's call of it says it took"
    assert not any("'" in function.name for part in recorded for function in part.costs)
    assert cost(recorded[1], "main") == 5, "the call of fill and the instructions after it, not main's callers' 24587"
    assert cost(recorded[1], "(below main)") == 0


def test_every_function_has_its_file(recorded: list[Part]) -> None:
    assert {function.file for part in recorded for function in part.costs} == {"work"}


def test_a_part_that_was_cut_short_is_left_out() -> None:
    lines = RECORDED.read_text().splitlines(keepends=True)
    last = max(number for number, line in enumerate(lines) if line.startswith("totals"))
    assert [part.number for part in parts(lines[:last])] == [1, 2]


def test_a_part_that_does_not_add_up_is_refused() -> None:
    text = RECORDED.read_text().replace("4 24582 1 4096", "4 24581 1 4096", 1)
    with pytest.raises(ProfileError, match=r"part 2 .* adds up to \[24586, .* not to its total \[24587"):
        list(parts(text.splitlines()))


@pytest.mark.parametrize(
    "line",
    ["fn=(999)", "wrong=1", "what is this", "0 not-a-number", "0 1 2 3 4 5 6 7 8 9 10 11", "cob=(9)"],
)
def test_a_line_that_nobody_understands_is_named(line: str) -> None:
    lines = RECORDED.read_text().splitlines()
    place = lines.index("fn=(218) fill") + 1
    with pytest.raises(ProfileError, match=rf"line {place + 1} .*: {re.escape(line)}$"):
        list(parts([*lines[:place], line, *lines[place:]]))


# What the format allows

EVENTS = ("Ir", "Dr", "D1mr")
NAMES = st.text("abcXYZ:<>~(), *&'", min_size=1, max_size=12).filter(
    lambda name: name == name.strip() and not name.startswith("(") and "'" not in name
)
AMOUNTS = st.tuples(*[st.integers(0, 2**40) for _ in EVENTS])


@dataclass(frozen=True)
class Line:
    """A cost line, or a call with its inclusive cost, of a function."""

    function: Function
    amounts: tuple[int, ...]
    called: Function | None


FUNCTIONS = st.builds(Function, NAMES, st.one_of(NAMES, st.just(NO_FILE)))
LINES = st.builds(Line, FUNCTIONS, AMOUNTS, st.one_of(st.none(), FUNCTIONS))


class Writer:
    """Writes as callgrind does: names once, then numbers; positions in every form; no zeros at the end."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, str], int] = {}

    def name(self, kind: str, name: str) -> str:
        known = (kind, name) in self._numbers
        number = self._numbers.setdefault((kind, name), len(self._numbers) + 1)
        return f"({number})" if known else f"({number}) {name}"

    def part(self, number: int, lines: Sequence[Line], positions: Sequence[str]) -> Iterable[str]:
        total = [sum(line.amounts[i] for line in lines if line.called is None) for i in range(len(EVENTS))]
        yield from (
            f"part: {number}",
            "desc: Trigger: Client Request",
            "positions: line",
            f"events: {' '.join(EVENTS)}",
        )
        yield f"summary: {' '.join(map(str, total))}"
        for line, position in zip(lines, positions, strict=True):
            yield f"ob={self.name('ob', line.function.file)}"
            yield f"fl={self.name('fl', 'any.c')}"
            yield f"fn={self.name('fn', line.function.name)}"
            if line.called is not None:
                yield f"cob={self.name('ob', line.called.file)}"
                yield f"cfn={self.name('fn', line.called.name)}"
                yield "calls=3 +2"
            amounts = list(line.amounts)
            while amounts and not amounts[-1]:
                amounts.pop()
            yield " ".join([position, *map(str, amounts)])
            yield ""
        yield f"totals: {' '.join(map(str, total))}"


@given(st.lists(st.lists(LINES, max_size=8), max_size=4), st.sampled_from(["0", "+17", "-3", "*"]))
def test_what_was_written_is_read(written: list[list[Line]], position: str) -> None:
    writer = Writer()
    text = ["# callgrind format", "version: 1", "creator: callgrind-3.19.0", "pid: 1", "cmd:  python x.py", ""]
    for number, lines in enumerate(written, 1):
        text += writer.part(number, lines, [position] * len(lines))
    found = list(parts(text))
    assert [part.number for part in found] == list(range(1, len(written) + 1))
    for part, lines in zip(found, written, strict=True):
        expected: dict[Function, list[int]] = {line.function: [0] * len(EVENTS) for line in lines}
        for line in lines:
            if line.called is None:
                expected[line.function] = [a + b for a, b in zip(expected[line.function], line.amounts, strict=True)]
        assert part.costs == expected
