"""What a bench compares: every combination of models, variants, sizes, batches and threads is a case."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import product
from typing import Annotated, Final

import msgspec

from hwprof.errors import UsageError
from hwprof.printable import one_line
from hwprof.remedies import catalogue
from hwprof.run import digests
from hwprof.workload.spec import WorkloadSpec

MOST_CASES: Final = 10_000
LONGEST_SLUG: Final = 60
DIGITS: Final = 8
"""Of what tells two cases apart whose names do not."""

EAGER: Final = "eager"

EnvironmentName = Annotated[str, msgspec.Meta(pattern=r"\A[^=\0]+\Z")]
EnvironmentValue = Annotated[str, msgspec.Meta(pattern=r"\A[^\0]*\Z")]
"""As the system takes them."""


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One workload, done in one way."""

    workload: WorkloadSpec
    environment: dict[EnvironmentName, EnvironmentValue] = {}  # of its processes, beside the user's

    @property
    def variant(self) -> str:
        """``channels_last+bfloat16``, or ``eager``."""
        return "+".join(self.workload.variants) or EAGER

    @property
    def own(self) -> bool:
        """Whether the model, with its inputs, is the user's: size and batch are its own."""
        return ":" in self.workload.model

    @property
    def label(self) -> str:
        """``yolov8n eager 640 b1``, with ``t2`` where threads were asked for: what pyperf calls it."""
        spec = self.workload
        words = [spec.model if spec.weights is None else f"{spec.model} {spec.weights}", self.variant]
        if not self.own:
            words += [*([str(spec.imgsz)] if spec.imgsz is not None else []), f"b{spec.batch}"]
        return one_line(" ".join([*words, *([f"t{spec.threads}"] if spec.threads is not None else [])]))

    @property
    def key(self) -> str:
        """The name of its folder: as much of the label as is plain, and a digest of all that it is."""
        slug = re.sub(r"[^a-zA-Z0-9]+", "-", self.label).strip("-")[:LONGEST_SLUG]
        return f"{slug}-{digests.of_bytes(msgspec.json.encode(self))[:DIGITS]}"

    @property
    def place(self) -> tuple[object, ...]:
        """What it has in common with the same model done in another way."""
        spec = self.workload
        threads = None if any(map(catalogue.threads_of, spec.variants)) else spec.threads
        return spec.model, spec.weights, spec.imgsz, spec.batch, threads


def cases(
    workloads: Iterable[WorkloadSpec],
    variants: Sequence[Case],
    sizes: Sequence[int | None],
    batches: Sequence[int],
    threads: Sequence[int | None],
) -> list[Case]:
    """All of them, each once, those of one model together. ``workloads``: a model each; ``variants``: cases whose
    workloads have what a variant replaces. Raises ``UsageError`` for more than anybody can mean, and for a number of
    threads in both of them."""
    if any(one.workload.threads for one in variants) and any(threads):
        raise UsageError("threads both as a variant and as --threads", "--threads, or variants threads=N")
    found: dict[str, Case] = {}
    for base in workloads:
        own = ":" in base.model
        for size, batch, number, variant in product(
            sizes[:1] if own else sizes, batches[:1] if own else batches, threads, variants
        ):
            changed = variant.workload
            spec = msgspec.structs.replace(
                base,
                imgsz=size,
                batch=batch,
                threads=changed.threads or number,
                fuse=base.fuse and changed.fuse,
                variants=changed.variants,
                changes=changed.changes,
            )
            case = Case(workload=spec, environment=variant.environment)
            found.setdefault(case.key, case)
            if len(found) > MOST_CASES:
                raise UsageError(f"these are more than {MOST_CASES:,} cases", "fewer models, variants or sizes")
    return list(found.values())
