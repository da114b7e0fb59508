"""``hwprof doctor``: what can be measured on this machine, what cannot, why, and what would change that."""

from __future__ import annotations

import click


@click.command("doctor")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def doctor_command(form: str) -> None:
    """Check every collector on this machine; for each that does not work, say why and how it would.

    \b
    Examples:
      hwprof doctor
      hwprof doctor --format json
    """
    from hwprof.hardware import machine
    from hwprof.report import diagnosis
    from hwprof.session import registry, requirements

    found = diagnosis.diagnose(machine.describe(), registry.survey(), requirements.check())
    if form == "json":
        click.echo(diagnosis.as_json(found))
    else:
        diagnosis.show(found)
