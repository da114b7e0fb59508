"""What collectors say of their data, found by its kind."""

from __future__ import annotations

from typing import TypeVar

from hwprof.run.details import Detail
from hwprof.run.manifest import PassRecord

DetailT = TypeVar("DetailT", bound=Detail)


def detail_of(kind: type[DetailT], record: PassRecord | None) -> DetailT | None:
    """What the first collector of this kind says of its data in a pass; None where there is none."""
    details = (one.detail_as(kind) for one in (record.collectors if record is not None else []))
    return next((detail for detail in details if detail is not None), None)
