"""``hwprof doctor``: what can be measured on this machine, what cannot, why, and what would change that."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from hwprof.cli.streams import print_json
from hwprof.cli.text_width import width_option

if TYPE_CHECKING:
    from hwprof.collector.registry import Surveyed
    from hwprof.report.document.diagnosis import Finding
    from hwprof.session.requirements import Requirement


@click.command("doctor")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@width_option
def doctor_command(form: str, width: int | None) -> None:
    """Check what this machine can measure, and say how to get the rest.

    \b
    Examples:
      hwprof doctor
      hwprof doctor --format json
    """
    from hwprof.collector import registry
    from hwprof.hardware import machine
    from hwprof.report.document import diagnosis
    from hwprof.session import requirements

    findings = [*map(_of_collector, registry.survey()), *map(_of_requirement, requirements.check())]
    found = diagnosis.Diagnosis(machine=machine.describe(), findings=findings)
    if form == "json":
        print_json(diagnosis.as_json(found))
    else:
        from hwprof.report.text.console import make_console
        from hwprof.report.text.diagnosis import show

        show(found, make_console(width))


def _of_collector(found: Surveyed) -> Finding:
    from hwprof.report.document.diagnosis import Finding
    from hwprof.run.details import as_json

    availability = found.availability
    return Finding(
        name=found.name,
        kind="collector",
        what_for=found.declaration.summary,
        available=availability.ok,
        passes=sorted(found.declaration.passes),
        reason=availability.unavailable.reason if availability.unavailable else None,
        remedy=availability.unavailable.remedy if availability.unavailable else None,
        notes=list(availability.notes),
        detail=as_json(availability.detail),
        tools=list(availability.tools),
    )


def _of_requirement(requirement: Requirement) -> Finding:
    from hwprof.report.document.diagnosis import Finding

    return Finding(
        name=requirement.name,
        kind="package",
        what_for=requirement.serves,
        available=requirement.found is not None,
        version=requirement.found,
        reason=requirement.unavailable.reason if requirement.unavailable else None,
        remedy=requirement.unavailable.remedy if requirement.unavailable else None,
    )
