"""``hwprof explain``: what a word, a metric or an event means, and how the figure is made."""

from __future__ import annotations

import click

from hwprof.cli.text_width import width_option
from hwprof.errors import UsageError


@click.command("explain")
@click.argument("words", nargs=-1)
@click.option("--list", "everything", is_flag=True, help="Every word of the glossary, with its meaning.")
@click.option("--format", "form", type=click.Choice(["text", "json", "markdown"]), default="text", show_default=True)
@width_option
def explain_command(words: tuple[str, ...], everything: bool, form: str, width: int | None) -> None:
    """Explain a word of the report: formula, provenance, source.

    WORDS are terms of the glossary, metrics, groups of metrics, or events.

    \b
    Examples:
      hwprof explain cpi
      hwprof explain critical path
      hwprof explain llc_mpki instructions
      hwprof explain --list
    """
    import msgspec

    from hwprof.collector import registry
    from hwprof.glossary import page
    from hwprof.glossary.explain import explain
    from hwprof.glossary.terms import terms
    from hwprof.report.text.console import make_console

    unknown: UsageError | None = None
    if everything == bool(words):
        raise UsageError("which word?", "hwprof explain WORD..., or hwprof explain --list")
    columns = make_console(width).width
    if form == "markdown":
        if words:
            raise UsageError("--format markdown is the whole glossary", "hwprof explain --list --format markdown")
        click.echo(page.markdown(registry.metrics()), nl=False)
    elif everything:
        click.echo(_json(msgspec.json.encode(terms())) if form == "json" else page.word_list(columns))
    else:
        found, unknown = explain(words, registry.metrics())
        entries = [page.entry(one, columns) for one in found]
        if found or unknown is None:
            click.echo(_json(msgspec.json.encode(found)) if form == "json" else "\n\n".join(entries))
    if unknown is not None:
        raise unknown


def _json(encoded: bytes) -> str:
    import msgspec

    return msgspec.json.format(encoded, indent=1).decode()
