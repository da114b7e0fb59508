"""``--variant``: the same model, done in another way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, TypeVar

import click
import msgspec

from hwprof.errors import HwprofError, UsageError
from hwprof.remedies import catalogue
from hwprof.unavailable import Unavailable
from hwprof.workload.spec import WorkloadSpec

Function = TypeVar("Function", bound=Callable[..., Any])

EAGER: Final = "eager"
"""The name of the model as it is."""

UNFUSED: Final = "unfused"


def variant_option(function: Function) -> Function:
    """Adds ``--variant``, whose names ``of_names`` takes."""
    option = click.option(
        "--variant",
        "variants",
        multiple=True,
        metavar="LIST",
        help=f"Another way to do the same, by comma, several together: {', '.join(catalogue.names())}; or {EAGER}.",
    )
    return option(function)


class Variant(NamedTuple):
    """Some together."""

    ready: tuple[catalogue.Ready, ...] = ()

    @property
    def environment(self) -> dict[str, str]:
        """Of the process, beside the user's."""
        return {name: value for one in self.ready for name, value in one.environment.items()}

    def of(self, spec: WorkloadSpec) -> WorkloadSpec:
        """The workload done in this way."""
        fields: dict[str, Any] = {name: value for one in self.ready for name, value in one.workload.items()}
        threads = next((one.threads for one in self.ready if one.threads is not None), spec.threads)
        return msgspec.structs.replace(
            spec,
            threads=threads,
            variants=tuple(one.name for one in self.ready),
            changes=tuple(one.change for one in self.ready if one.change is not None),
            **fields,
        )


def of_names(texts: Sequence[str]) -> Variant:
    """Names by comma, in one text or several. Raises ``UsageError`` for one that there is not, or that does not go with
    another, and ``HwprofError`` for what this machine lacks."""
    names = dict.fromkeys(name for text in texts for part in text.split(",") if (name := part.strip().lower()))
    found: list[catalogue.Ready] = []
    for name in names:
        if name == EAGER:
            continue
        one = catalogue.ready(name)
        if isinstance(one, Unavailable):
            raise HwprofError(f"--variant {name}: {one.reason}", one.remedy)
        if not catalogue.together(one, found):
            other = next(each for each in found if not catalogue.together(one, [each]))
            raise UsageError(f"--variant {name} and {other.name} do not go together", "one of them at a time")
        found.append(one)
    return Variant(tuple(found))


def check_variant(spec: WorkloadSpec) -> None:
    """Raises ``UsageError`` for a variant of hwprof's own models that a model of the user's does not heed."""
    if ":" in spec.model and not spec.fuse and UNFUSED in spec.variants:
        raise UsageError(f"--variant {UNFUSED}: only for YOLO pipelines", "a factory that fuses, or does not")
