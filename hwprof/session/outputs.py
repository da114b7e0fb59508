"""Whether an instrumented pass came to the same outputs as the code on its own, to the bit.

Instrumented code that gives something else was not the model's, so its counts are nobody's. But models differ that no
two runs of are alike: they are excused once passes without any instrumentation were seen to differ in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import Final

from hwprof.run.manifest import PassRecord
from hwprof.run.notes import Note, NoteKind
from hwprof.session.pass_record import PassError
from hwprof.session.plan import PassPlan

Outputs = Mapping[int, str]
"""By iteration the checksum of what came out."""


NOT_ALIKE: Final = (
    "differ from an uninstrumented pass's, as those of two uninstrumented passes do: no two runs are alike"
)


NOT_COMPARED: Final = "not compared: they have no checksum (over 1 GiB or a million values, or not readable)"


class OutputsDifferError(PassError):
    """What a pass counted is not what the model does: an error, whoever asked for the pass."""


def uninstrumented(plan: PassPlan, companion: PassRecord | None) -> PassPlan:
    """A pass that does the same iterations with no collector at all, as its ``companion`` did, where there is one."""
    return PassPlan(
        name=f"{plan.times_from}-again",
        iterations=plan.iterations,
        warmup=plan.warmup,
        in_process=(),
        external=(),
        environment=companion.environment if companion is not None else {},
        threads=plan.threads,
        outputs=plan.outputs,
        timed=False,
    )


def compare(own: PassRecord, companion: PassRecord | None, again: Callable[[], PassRecord]) -> None:
    """``own``: the instrumented pass; ``companion``: the one whose times it takes; ``again`` does a pass as
    ``uninstrumented`` plans it, and is called where that is needed. Where outputs differ for a reason of their own, the
    collectors of ``own`` get a note; so they do where its own have no checksum.

    Raises ``OutputsDifferError``.
    """
    counted = _outputs(own, warmup=False)
    if not counted and own.iterations:
        _note(own, NoteKind.INCOMPLETE, NOT_COMPARED)
    others = [_outputs(companion)] if companion is not None else []
    if _are_all_among(counted, others) or _are_all_one(counted, [*others, _outputs(own, warmup=True)]):
        return
    others += [_outputs(again()), _outputs(own, warmup=True)]
    if _change_from_run_to_run(others):
        _note(own, NoteKind.SUSPECT, NOT_ALIKE)
        return
    for index, found in counted.items():
        for other in others:
            if other.get(index, found) != found:
                raise _differing(index, found, other[index])


def _note(own: PassRecord, kind: NoteKind, text: str) -> None:
    for collector in own.collectors:
        collector.notes = [*collector.notes, Note(kind, text, "outputs")]


def _differing(index: int, found: str, expected: str) -> OutputsDifferError:
    return OutputsDifferError(
        f"the outputs of iteration {index} are not those of uninstrumented passes ({found}, not {expected}), so counts"
        " are not what the model does",
        "leave it out with --no-instrumented",
        1,
        foreseen=True,
    )


def _outputs(record: PassRecord, warmup: bool | None = None) -> Outputs:
    """Of its iterations: all, only those of the warm-up, or only the others."""
    return {
        iteration.index: iteration.outputs
        for iteration in record.iterations
        if iteration.outputs is not None and warmup in (None, iteration.warmup)
    }


def _are_all_among(counted: Outputs, others: Sequence[Outputs]) -> bool:
    """Whether each is known of others, and the same there."""
    return all({found} == {other[index] for other in others if index in other} for index, found in counted.items())


def _are_all_one(counted: Outputs, others: Sequence[Outputs]) -> bool:
    """Whether every iteration that is known of others gave the same, as most models do, and these give that, too."""
    known = {found for other in others for found in other.values()}
    return len(known) == 1 and known == set(counted.values())


def _change_from_run_to_run(outputs: Sequence[Outputs]) -> bool:
    return any(one[index] != other.get(index, one[index]) for one, other in combinations(outputs, 2) for index in one)
