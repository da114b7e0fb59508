"""``hwprof models``: the models that ``--model`` takes by name."""

from __future__ import annotations

import click


@click.command("models")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def models_command(form: str) -> None:
    """List the models that --model takes by name.

    \b
    Example:
      hwprof models | grep yolov8
    """
    import orjson

    from hwprof.workload.model_registry import known_models

    names = known_models()
    click.echo(orjson.dumps(names).decode() if form == "json" else "\n".join(names))
