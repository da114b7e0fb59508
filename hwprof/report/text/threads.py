"""The section on threads and waiting: what each thread did, what the inference waited for, and where threads idle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from hwprof.analysis.states import BARRIER_LATENCY, BLOCKED, BUSY, UNOBSERVED
from hwprof.report.document.kernels import Kernels, SampledLayer
from hwprof.report.document.threads import PathPart, Threads, ThreadsLayer, ThreadTimes
from hwprof.report.text import figures, layer_rows
from hwprof.report.text.figures import milliseconds, percent
from hwprof.report.text.footnotes import fitting, of_columns, unavailable
from hwprof.report.text.grid import Column, fits_whole
from hwprof.report.text.page import PATH, Page
from hwprof.run.passes import MEASURE

ROLES: Final = {"calling": "calling thread", "team": "worker", "other": "other thread"}
"""A worker is a thread of the OpenMP team."""

NOBODYS: Final = (BARRIER_LATENCY, UNOBSERVED)
"""Parts of the path that are no thread's own."""

THERE: Final = "iterations"

PATH_OF_LAYER: Final = "critical path"

PARTS: Final = 6
"""Parts of the critical path that are printed."""

CROWDED: Final = 0.1
"""From which preempted share of the threads' time on there is a note."""

LEAST: Final = 0.005
"""Of the path, or of a thread's time: less is not printed."""


def show(page: Page) -> None:
    """The section, where a pass took samples of its calling thread."""
    threads = page.part(Threads)
    if threads is None:
        return
    _threads(threads, page)
    _layers(threads, page)


def _threads(threads: Threads, page: Page) -> None:
    rows = [one for one in threads.threads if one.role != "other" or one.busy_ns + one.path_ns > 0]
    glyphs = page.glyphs

    def ms(values: Sequence[float]) -> list[str]:
        return [milliseconds(ns) if ns else "0" for ns in values]

    shown = page.table(
        [
            Column("thread", [_who(one.tid, threads) for one in rows], right=False, least=14),
            Column("name", [f"{one.name or ''} {one.tid}".strip() for one in rows], 3, right=False),
            *_there(rows, threads),
            Column("busy ms", ms([one.busy_ns for one in rows])),
            Column("waiting", ms([one.waiting_ns for one in rows])),
            Column("blocked", ms([sum(one.blocked_ns.values()) for one in rows])),
            Column("preempted", ms([one.preempted_ns for one in rows])),
            Column("busy", [percent(one.busy_ns / one.elapsed_ns, glyphs) for one in rows], 4),
            Column("on path ms", ms([one.path_ns for one in rows])),
            Column("path", [percent(one.path_share, glyphs) for one in rows], 1),
        ],
        f"Threads, pass {threads.pass_name}: {milliseconds(threads.elapsed_ns)} ms of inference per iteration",
    )
    path = f"path: critical path, resolution {milliseconds(threads.period_ns)} ms (hwprof explain critical path)"
    page.notes(
        [
            _efficiency(threads, page),
            _path(threads.critical_path, threads, page),
            *_blocked(threads, page),
            _preempted(threads, page),
            of_columns(
                shown,
                {
                    "waiting": "waiting: spinning in OpenMP",
                    "blocked": "blocked: off-CPU by itself",
                    "preempted": "preempted: off-CPU, others ran",
                },
            ),
            of_columns(shown, {"on path ms": path, "path": path}),
            of_columns(shown, {THERE: f"{THERE}: in which the thread was there; its times are of these"}),
        ]
    )


def _there(rows: Sequence[ThreadTimes], threads: Threads) -> list[Column]:
    """In how many iterations each thread was there, where that is not all."""
    if all(one.iterations == threads.iterations for one in rows):
        return []
    return [Column(THERE, [f"{one.iterations} of {threads.iterations}" for one in rows])]


def _layers(threads: Threads, page: Page) -> None:
    """The hottest layers that enough samples tell of."""
    known = {layer.path: layer for layer in threads.layers}
    kernels = page.part(Kernels)
    sampled = {layer.path: layer for layer in kernels.layers} if kernels is not None else {}
    hottest = [layer for layer in page.hottest() if layer.path in known]
    if not hottest:
        page.notes([_too_few(threads, page)])
        return
    names = [layer.path for layer in hottest]
    rows = [known[layer.path] for layer in hottest]
    balance = [sampled.get(row.path) for row in rows]
    glyphs = page.glyphs

    def share(name: str) -> list[str]:
        return [_percent(getattr(one, name, None), page) for one in balance]

    columns = [
        Column("layer", names, right=False, least=PATH, among=page.paths),
        Column("ms", [milliseconds(row.elapsed_ns) for row in rows], 1),
        Column("eff.", [_percent(figures.at_most_all(one.efficiency) if one else None, page) for one in balance]),
        Column("imbal.", share("imbalance"), 2),
        Column("wait", share("wait_share"), 3),
        Column("off-CPU", [_off(one, row, threads, page) for one, row in zip(balance, rows, strict=True)], 4),
        Column("largest loss", [row.largest_loss or glyphs.dash for row in rows], right=False),
    ]
    paths = [
        Column(PATH_OF_LAYER, [_short(row, parts, threads, page) for row in rows], 6, right=False) for parts in (2, 1)
    ]
    fitting_path = next((path for path in paths if fits_whole([*columns, path], page.console.width)), paths[-1])
    shown = page.table([*columns, fitting_path], f"Threads in the hottest layers ({len(rows)} of {_called(page)})")
    lost = [column.header for column in shown if column.header in ("off-CPU", "largest loss")]
    page.notes(
        [
            of_columns(
                shown,
                {"eff.": "eff.: parallel efficiency = busy / (threads x time)", "wait": "wait: CPU time in OpenMP"},
            ),
            of_columns(shown, {"imbal.": f"imbal. = busiest / mean - 1{_from_busy(kernels)}"}),
            f"{', '.join(lost)}: of threads x time; {glyphs.dash} below 10%, or too few samples" if lost else "",
            _new_threads(balance, page),
            of_columns(shown, {PATH_OF_LAYER: _unknown_paths(rows, threads, page)}),
            layer_rows.elsewhere(hottest, page),
            _too_few(threads, page) if len(hottest) < len(page.document.hottest.layers) else "",
        ]
    )


def _who(tid: int, threads: Threads) -> str:
    """By its role, with its number where several have the same one."""
    role = next((one.role for one in threads.threads if one.tid == tid), "other")
    several = sum(one.role == role for one in threads.threads) > 1
    return f"{ROLES[role]} {tid}" if several else ROLES[role]


def _words_of(part: PathPart, threads: Threads, page: Page) -> str:
    share = percent(part.share, page.glyphs)
    if part.state in NOBODYS:
        return f"{part.state} {share}"
    cause = f" ({part.cause})" if part.cause is not None else ""
    return f"{_who(part.tid, threads)} {'at work' if part.state == BUSY else part.state} {share}{cause}"


def _new_threads(balance: Sequence[SampledLayer | None], page: Page) -> str:
    """Of which layers it is not known how threads share the work, for these began just then."""
    names = [one.path for one in balance if one and one.efficiency is None and (one.unsampled_share or 0) > 0]
    if not names:
        return ""
    return f"{page.glyphs.dash} eff., imbal. of {figures.some(names, 2)}: new threads work before they can be sampled"


def _efficiency(threads: Threads, page: Page) -> str:
    if threads.efficiency is None or threads.threads_sharing is None:
        return ""
    number = figures.plural(threads.threads_sharing, "thread")
    asked = f", {threads.threads_asked} asked for" if threads.threads_sharing != threads.threads_asked else ""
    share = percent(figures.at_most_all(threads.efficiency), page.glyphs)
    return f"parallel efficiency {share} = busy / ({number} x elapsed time{asked})"


def _path(parts: Sequence[PathPart], threads: Threads, page: Page) -> str:
    shown = [_words_of(part, threads, page) for part in parts[:PARTS] if part.share >= LEAST]
    wordings = [f"critical path: {', '.join(shown[:number])}" for number in range(len(shown), 0, -1)]
    return fitting(*wordings) if shown else ""


def _blocked(threads: Threads, page: Page) -> list[str]:
    """For what threads waited: those that have samples, and the others, of which no row tells."""
    if threads.reasons_missing is not None:
        missing = threads.reasons_missing
        return [unavailable(["off-CPU reasons"], missing.reason, missing.remedy, page.document)]
    sums: dict[str, float] = {}
    for one in threads.threads:
        for reason, ns in one.blocked_ns.items():
            sums[reason] = sums.get(reason, 0.0) + ns * one.iterations / threads.iterations
    sampled = figures.plural(len(threads.threads), "sampled thread")
    others = figures.plural(threads.unsampled_threads, "thread")
    return [
        _waits(f"blocked, {sampled}", sums, threads),
        _idle(others, threads) or _waits(f"blocked, {others} without samples", threads.unsampled_blocked_ns, threads),
    ]


def _idle(others: str, threads: Threads) -> str:
    """Threads that did nothing in any iteration have no part in it: how long they waited is how long it took."""
    blocked = threads.unsampled_blocked_ns
    if not blocked or sum(blocked.values()) < (1 - LEAST) * threads.unsampled_threads * threads.elapsed_ns:
        return ""
    return f"idle throughout: {others} ({', '.join(sorted(blocked))})"


def _waits(whose: str, sums: Mapping[str, float], threads: Threads) -> str:
    words = [
        f"{'unknown' if reason == BLOCKED else reason} {milliseconds(ns)} ms"
        for reason, ns in sorted(sums.items(), key=lambda item: -item[1])
        if ns >= LEAST * threads.elapsed_ns
    ]
    return f"{whose}: {', '.join(words)}" if words else ""


def _preempted(threads: Threads, page: Page) -> str:
    """Where others had the processors, times are not the model's own. Of the threads that efficiency is of."""
    members = [one for one in threads.threads if one.shares_work]
    number = min(len(members), threads.threads_sharing or len(members))  # at a time: of many one after the other
    elapsed_ns = number * threads.elapsed_ns * threads.iterations
    share = sum(one.preempted_ns * one.iterations for one in members) / elapsed_ns if members else 0.0
    if share < CROWDED:
        return ""
    whose = f"{number} threads' time" if number > 1 else "the calling thread's time"
    return (
        f"preempted {percent(share, page.glyphs)} of {whose}, all times are longer by it."
        f" Try: idle processors{', fewer --threads' if number > 1 else ''}"
    )


def _short(row: ThreadsLayer, parts: int, threads: Threads, page: Page) -> str:
    """So many of the longest parts, without what goes without saying: that a thread was at work; a dash where none is
    known."""
    words = []
    for part in row.critical_path[:parts]:
        what = part.state if part.state in NOBODYS else _who(part.tid, threads).replace(" thread", "")
        doing = "" if part.state == BUSY or part.state in NOBODYS else f" {part.state}"
        if part.share >= LEAST:
            cause = f" ({part.cause})" if part.cause is not None else ""
            words.append(f"{what}{doing} {_percent(part.share, page)}{cause}")
    return ", ".join(words) or page.glyphs.dash


def _unknown_paths(rows: Sequence[ThreadsLayer], threads: Threads, page: Page) -> str:
    if all(row.critical_path for row in rows):
        return ""
    return f"{PATH_OF_LAYER}: {page.glyphs.dash} under {threads.few_samples} samples of the calling thread"


def _off(one: SampledLayer | None, row: ThreadsLayer, threads: Threads, page: Page) -> str:
    if one is None or one.off_cpu_ns is None or not one.threads_sharing or not row.elapsed_ns:
        return page.glyphs.dash
    return _percent(one.off_cpu_ns / (one.threads_sharing * row.elapsed_ns), page)


def _percent(share: float | None, page: Page) -> str:
    return page.glyphs.dash if share is None else f"{100 * share:.0f}%"


def _from_busy(kernels: Kernels | None) -> str:
    return f", from {kernels.few_for_balance} busy samples on" if kernels is not None else ""


def _called(page: Page) -> int:
    """How many layers there was anything to sample of."""
    return sum(layer.calls is not None for layer in page.layers)


def _too_few(threads: Threads, page: Page) -> str:
    more = "more --iterations" if threads.pass_name == MEASURE else "--sample-passes measure"
    return f"not listed: layers under {threads.few_samples} samples. Try: {more}"
