"""What a noisy run says before everything else, and what its tables say of iterations that were left out."""

from __future__ import annotations

from hwprof.printable import printable
from hwprof.report.document.document import Document
from hwprof.report.document.noise import Noise
from hwprof.report.text import figures
from hwprof.report.text.figures import Glyphs, plural
from hwprof.unavailable import explain

QUIETER = "collect with --wait-quiet"
OWN_HOST = "collect at another time, or on a machine whose processors no other one shares"
MORE_ALLOWED = "a higher CPU limit (docker run --cpus, resources.limits.cpu, cpu.max), or fewer --threads"


AS_IT_WAS = "collect again, and leave its affinity as it is (taskset, sched_setaffinity, cpuset)"

LONGER = "--time with more seconds"
WARMER = "more --warmup"
COOLER = "collect again after a pause: a processor that is hot runs slower"


def warnings(document: Document, glyphs: Glyphs) -> list[str]:
    """What is wrong with the times, and what to do; nothing of a quiet run."""
    found = document.part(Noise)
    if found is None:
        return []
    said = []
    if found.others:
        said.append(_others(found, document, glyphs))
    if found.spread and found.median_over_min is not None:
        vary = f"the median is {figures.times_as_long(found.median_over_min, glyphs)} the minimum"
        if found.slow:
            vary += f", and {found.slow} of {plural(found.timed, 'iteration')} take a fifth longer than it"
        said.append(explain(f"times vary: {vary}", None if found.others else f"{QUIETER}, or more --iterations"))
    if found.drift is not None:
        drift = _drift(found.drift, "the last third of the iterations")
        said.append(explain(drift, None if found.timed_disturbed else WARMER if found.drift < 0 else COOLER))
    return [*said, *_not_precise(found, glyphs)]


def brief(document: Document, glyphs: Glyphs) -> list[str]:
    """The first of them; a drift, and what the user wanted and did not get, whatever else is wrong."""
    said, found = warnings(document, glyphs), document.part(Noise)
    if found is None or len(said) < 2:
        return said
    drift = [] if found.drift is None else [f"and {_drift(found.drift, 'the last third')}"]
    return [said[0], *drift, *_not_precise(found, glyphs)]


def precision(found: Noise, glyphs: Glyphs) -> str:
    """``each layer ±1.8%``; nothing where more was wanted, which a warning tells, and where it is not known."""
    if found.precision is None or _not_precise(found, glyphs):
        return ""
    return f"each layer {_within(found.precision, glyphs)}"


def _not_precise(found: Noise, glyphs: Glyphs) -> list[str]:
    known, wanted = found.precision, found.precision_wanted
    if known is None or wanted is None or known <= wanted:
        return []
    layer, within = printable(found.precision_layer or ""), _within(known, glyphs)
    return [explain(f"the time of layer {layer} is known to {within}, not to {_within(wanted, glyphs)}", LONGER)]


def _within(error: float, glyphs: Glyphs) -> str:
    percent = 100 * error
    return f"{glyphs.plus_minus}{percent:.3g}%" if percent < 999.5 else f"{glyphs.plus_minus}{percent:,.0f}%"


def _drift(change: float, last: str) -> str:
    return f"times drift: {last} takes {abs(change):.0%} {'longer' if change > 0 else 'less'} than the first"


def _others(found: Noise, document: Document, glyphs: Glyphs) -> str:
    """What others took, how many iterations have it, and what helps."""
    shares = {"preempted": found.preempted_share, "stolen by the hypervisor": found.stolen_share}
    parts = [f"{what} {figures.percent(share, glyphs)}" for what, share in shares.items() if share is not None]
    taken = f" ({', '.join(parts)})" if parts else ""
    if found.limited:
        limited = f"{_limited(found, document)}{taken}; {_left_out(found)}{_with_stops(found)}"
        return explain(limited, MORE_ALLOWED)
    if found.narrowed:
        narrowed = (
            f"the process might use only {plural(found.least_processors or 0, 'processor')} in"
            f" {found.narrowed} of {plural(found.iterations, 'iteration')}, more in the others{taken};"
            f" {_left_out(found)}"
        )
        return explain(narrowed, AS_IT_WAS)
    waited = any(word.startswith("--wait-quiet") for word in document.run.command)
    quieter = "collect at another time (--wait-quiet waited in vain)" if waited else QUIETER
    who, remedy = "other programs", f"end other programs, or {quieter}"
    if (found.stolen_share or 0.0) > (found.preempted_share or 0.0):
        return explain(f"other virtual machines had the processors{taken}; {_left_out(found)}", OWN_HOST)
    threads = document.workload.threads if document.workload is not None else 1
    processors = document.machine.usable_processors
    if found.among_themselves:
        fewer = min(processors, max(1, threads - 1))
        return explain(
            f"its own threads had the processors from one another{taken}; {_left_out(found)}", f"--threads {fewer}"
        )
    if threads > processors:
        who, remedy = f"its own {threads} threads, or other programs,", f"--threads {processors}, or {quieter}"
    return explain(f"{who} had the processors{taken}; {_left_out(found)}", remedy)


def _limited(found: Noise, document: Document) -> str:
    allowed = document.machine.cpu_limit
    limit = f" allows {allowed:.3g} CPUs and" if allowed is not None else ""
    seconds = (found.throttled_ns or 0) / 1e9
    return (
        f"the container's control group{limit} stopped the run {plural(found.throttled or 0, 'time')}, {seconds:.3g} s"
    )


def _with_stops(found: Noise) -> str:
    """What a container with such a limit has, where times are of the iterations that it left alone."""
    if found.mean_ns is None or not found.timed_left_out:
        return ""
    return f"; with those left out an iteration takes {figures.milliseconds(found.mean_ns)} ms on average"


def all_disturbed_kept(found: Noise) -> bool:
    """Whether times are of disturbed iterations, and the least of them says more."""
    return bool(found.disturbed and not found.left_out_iterations and found.timed > 1)


def _left_out(found: Noise) -> str:
    """How many iterations were disturbed, and which remain."""
    left_out = len(found.left_out_iterations)
    if not left_out:
        kept = ""
        if found.disturbed:
            kept = f": all are kept{', see the minima (--all)' if all_disturbed_kept(found) else ''}"
        return f"{found.disturbed} of {plural(found.iterations, 'iteration')} disturbed{kept}"
    number = plural(left_out, "disturbed iteration")
    if left_out < found.disturbed:
        number = f"{left_out} of {plural(found.disturbed, 'disturbed iteration')}"
    kinds = {"timed": found.timed, "counted": found.counted}
    if found.timed + found.counted + left_out > found.iterations:  # the counted ones are those that times are of
        del kinds["timed"]
    remain = figures.enumerate_words([f"{kept} {kind}" for kind, kept in kinds.items() if kept])
    return f"{number} left out, {remain} remain"


def remaining(kept: int, left_out: int, noun: str, plural_form: str | None = None) -> str:
    """``14 timed iterations``; ``9 of 14 timed iterations (5 disturbed)`` where some were left out."""
    every = plural(kept + left_out, noun, plural_form)
    return f"{kept} of {every} ({left_out} disturbed)" if left_out else every
