"""Outputs of an instrumented pass: what counts as the same, what is excused, and what is an error."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from hwprof.run.manifest import CollectorRecord, IterationRecord, PassRecord
from hwprof.run.notes import NoteKind
from hwprof.session.outputs import OutputsDifferError, compare, uninstrumented
from hwprof.session.plan import PassPlan

FIRST, SECOND, OTHER = "1111", "2222", "3333"


def made(name: str, outputs: Mapping[int, str | None], warmup: int = 1) -> PassRecord:
    iterations = [IterationRecord(index, index < warmup, None, False, outputs=one) for index, one in outputs.items()]
    return PassRecord(name=name, iterations=iterations, collectors=[CollectorRecord(name="counter", state="ran")])


def own(*outputs: str | None) -> PassRecord:
    return made("instrumented", dict(enumerate(outputs)))


def measured(*outputs: str | None) -> PassRecord:
    return made("measure", dict(enumerate(outputs)), warmup=2)


def never() -> PassRecord:
    raise AssertionError("nothing is in doubt")


def then(*outputs: str | None) -> Callable[[], PassRecord]:
    return lambda: made("measure-again", dict(enumerate(outputs)))


def notes(record: PassRecord) -> list[tuple[NoteKind, str | None]]:
    return [(note.kind, note.subject) for collector in record.collectors for note in collector.notes]


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ([FIRST, FIRST], [FIRST, FIRST, FIRST]),
        ([FIRST, SECOND], [FIRST, SECOND, OTHER]),  # each call gives something else, always the same
        ([FIRST, SECOND], [FIRST, SECOND, None]),
        ([FIRST, FIRST], [FIRST, None, None]),  # all give the same, and the one that is counted, too
        ([FIRST, FIRST], [None, None, None]),
        ([None, FIRST], [FIRST, None, None]),
    ],
)
def test_the_same_iteration_with_the_same_output_is_enough(ours: list[str | None], theirs: list[str | None]) -> None:
    record = own(*ours)
    compare(record, measured(*theirs), never)
    assert notes(record) == []


def test_a_difference_is_an_error_that_says_where() -> None:
    record = own(FIRST, OTHER)
    with pytest.raises(OutputsDifferError) as caught:
        compare(record, measured(FIRST, FIRST, FIRST), then(FIRST, FIRST))
    assert "iteration 1" in caught.value.message
    assert OTHER in caught.value.message and FIRST in caught.value.message
    assert caught.value.exit_code == 1


def test_a_difference_is_excused_where_two_passes_without_instrumentation_differ() -> None:
    record = own(FIRST, OTHER)
    compare(record, measured(FIRST, FIRST, FIRST), then(FIRST, SECOND))
    assert notes(record) == [(NoteKind.SUSPECT, "outputs")]


def test_the_warm_up_of_the_pass_itself_is_not_instrumented_either() -> None:
    record = own(OTHER, OTHER)
    compare(record, measured(FIRST, FIRST), then(FIRST, FIRST))
    assert notes(record) == [(NoteKind.SUSPECT, "outputs")]


def test_outputs_without_a_checksum_are_not_compared_and_that_is_said() -> None:
    record = own(FIRST, None)
    compare(record, measured(FIRST, None), never)
    assert notes(record) == [(NoteKind.INCOMPLETE, "outputs")]


def test_one_that_is_not_known_is_asked_for() -> None:
    record = own(FIRST, SECOND)
    compare(record, measured(FIRST), then(FIRST, SECOND))
    compare(record, None, then(FIRST, SECOND))
    assert notes(record) == []
    with pytest.raises(OutputsDifferError):
        compare(record, None, then(FIRST, FIRST))


def test_the_pass_in_doubt_does_the_same_iterations_with_nobody() -> None:
    plan = PassPlan(
        name="instrumented", iterations=2, warmup=1, in_process=(), external=(), times_from="measure", outputs=3,
        environment={"JIT": "1"}, threads=4, slow=True,
    )  # fmt: skip
    made_up = PassRecord(name="measure", environment={"OWN": "1"})
    again = uninstrumented(plan, made_up)
    assert (again.iterations, again.warmup, again.outputs, again.threads) == (2, 1, 3, 4)
    assert again.name != "measure"
    assert again.in_process == again.external == again.launcher == ()
    assert (again.environment, again.slow, again.times_from, again.timed) == ({"OWN": "1"}, False, None, False)
