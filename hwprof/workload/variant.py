"""The variant of a prepared workload: what is changed in its models, and what is to be said of that."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

import msgspec

from hwprof.remedies import catalogue
from hwprof.run.variants import VariantRecord
from hwprof.workload.changes import FrozenWarning, of_built, of_outputs
from hwprof.workload.layer_hooks import stand_ins
from hwprof.workload.protocol import Workload
from hwprof.workload.spec import WorkloadSpec
from hwprof.workload.variant_outputs import VariantOutputs

UNREPEATABLE: Final = "outputs are not compared: two calls of the model as it is give different ones"


class Variant(NamedTuple):
    """``take_back`` takes other code out of the models' places again; ``record``: None where there is no variant."""

    take_back: Callable[[], None]
    record: VariantRecord | None
    notes: list[str]


def make(workload: Workload, spec: WorkloadSpec, *, compare: bool, watchable: bool = False) -> Variant:
    """Changes the models. ``compare``: outputs, before and after; ``watchable``: what another program does can be
    watched by layer. Raises ``HwprofError`` where something cannot be changed, and what the models raise."""
    without = _outputs_without(workload, spec) if compare else None
    take_back = of_built(workload.modules.values(), spec.changes)
    for stand_in in stand_ins(workload.modules).values():
        stand_in.can_be_watched = watchable
    if not spec.variants:
        return Variant(take_back, None, [])
    with _told() as notes:
        compared = without.compared(workload) if without is not None else (None, None)
    if without is not None and not without.repeatable:
        notes.append(UNREPEATABLE)
    return Variant(take_back, VariantRecord(list(spec.variants), *compared), notes)


@contextmanager
def _told() -> Iterator[list[str]]:
    """What is to be said of a variant that was made when its model was first called."""
    notes: list[str] = []
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", FrozenWarning)
        yield notes
    for one in said:
        if issubclass(one.category, FrozenWarning):
            notes.append(str(one.message))
        else:
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)


def _outputs_without(workload: Workload, spec: WorkloadSpec) -> VariantOutputs | None:
    """Of another workload where the variant is built in another way from the start; None where outputs are the same."""
    from hwprof.workload import factory

    if fields := catalogue.fields_of(spec.variants):
        usual = {field: not value for field, value in fields.items()}
        other = factory.build(msgspec.structs.replace(spec, **usual, variants=(), changes=()))
        other.prepare()
        return VariantOutputs(other)
    return VariantOutputs(workload) if of_outputs(spec.changes) else None
