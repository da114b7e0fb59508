"""``hwprof models``: the models that ``--model`` takes by name."""

from __future__ import annotations

import click


@click.command("models")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def models_command(form: str) -> None:
    """List the models that --model takes by name, each with its task.

    \b
    Example:
      hwprof models | grep yolov8
    """
    import orjson

    from hwprof.workload.model_registry import known_entries

    entries = [(entry.name, entry.task.name) for entry in known_entries()]
    if form == "json":
        click.echo(orjson.dumps([{"name": name, "task": task} for name, task in entries]).decode())
        return
    width = max(len(name) for name, _ in entries)
    click.echo("\n".join(f"{name:{width}}  {task}" for name, task in entries))
