"""``hwprof peaks``: what this machine can do at most."""

from __future__ import annotations

import click

from hwprof.cli.streams import print_json
from hwprof.cli.text_width import width_option
from hwprof.errors import UsageError


@click.command("peaks")
@click.option("--threads", type=click.IntRange(1, 4096), help="Beside one thread. Default: one a core.")
@click.option("--again", is_flag=True, help="Measure, also where they are known from an earlier time.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@width_option
def peaks_command(threads: int | None, again: bool, form: str, width: int | None) -> None:
    """Measure what this machine can do at most: arithmetic, bandwidth and latency of caches and DRAM.

    Takes some eight seconds. The result is kept for this machine; hwprof collect measures it before its first run.

    \b
    Examples:
      hwprof peaks
      hwprof peaks --threads 8 --again
      hwprof peaks --format json | jq '.peaks[] | select(.what == "triad")'
    """
    import msgspec

    from hwprof.cli.progress import Bars
    from hwprof.hardware import machine
    from hwprof.session import peaks

    of = machine.describe()
    numbers = peaks.usual_threads(of)
    if threads is not None:
        if threads > max(numbers):
            raise UsageError(f"--threads {threads}: there are {max(numbers)} cores to use here, a thread each")
        numbers = sorted({1, threads})
    found = None if again else peaks.kept(of, numbers, too_low=False)
    if found is None:
        with Bars() as bars:
            found = peaks.measure(of, numbers, lambda what: bars.phase("peaks", what, None))
    if form == "json":
        print_json(msgspec.json.format(msgspec.json.encode(found), indent=1).decode())
    else:
        from hwprof.report.text.console import make_console
        from hwprof.report.text.peaks import show

        show(found, make_console(width))
