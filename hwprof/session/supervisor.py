"""The parent: does the passes of a run in turn, and keeps those that are done when one fails."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from itertools import zip_longest

from hwprof.errors import is_full_disk
from hwprof.run.directory import RunDirectory
from hwprof.run.manifest import PassRecord
from hwprof.session.fork_server import ForkServer
from hwprof.session.outputs import OutputsDifferError
from hwprof.session.pass_record import PassError, cannot_write, recorded, save_if_possible
from hwprof.session.plan import PassPlan
from hwprof.session.progress import Progress
from hwprof.session.supervised_pass import Means, Pass, nothing
from hwprof.workload.spec import WorkloadSpec


def carry_out(
    run: RunDirectory,
    workload: WorkloadSpec,
    plans: Sequence[PassPlan],
    progress: Progress,
    server: ForkServer | None = None,
    when_timed: Callable[[], None] = nothing,
    when_measured: Callable[[], None] = nothing,
) -> None:
    """Does every pass in turn and keeps each in ``run``. ``server``: who has the workload's libraries at hand.
    ``when_timed`` is called when no pass is left whose times count, ``when_measured`` when the last one measures no
    more; it may go on to add up for seconds.

    Raises ``PassError`` at the first pass that fails (at the end, where the run can go on without it; not at all, where
    nobody asked for it: its record tells), and ``KeyboardInterrupt``; the passes done by then are kept.
    """
    try:
        failure = _carry_out(run, workload, plans, progress, server, when_timed, when_measured)
    except PassError as error:
        if is_full_disk(error):
            save_if_possible(run)  # the weights had room that is free now
        raise
    except OSError as error:
        raise cannot_write(run, error) from error
    if failure is not None:
        raise failure


def _carry_out(
    run: RunDirectory,
    workload: WorkloadSpec,
    plans: Sequence[PassPlan],
    progress: Progress,
    server: ForkServer | None,
    when_timed: Callable[[], None],
    when_measured: Callable[[], None],
) -> PassError | None:
    failure: PassError | None = None
    with tempfile.TemporaryFile(dir=run.path) as weights:  # it has no name, and is gone with the last process
        means = Means(run, workload, progress, server, weights.fileno())
        passes = [Pass(means, plan, first=number == 0) for number, plan in enumerate(plans)]
        timed = [number for number, one in enumerate(passes) if one.plan.times_from is None]
        untimed = passes[timed[-1] + 1 :] if timed else []
        try:
            for done, following in zip_longest(passes, passes[1:]):
                if done in untimed[:1]:
                    when_timed()
                try:
                    with recorded(run, done.plan) as record:
                        done.carry_out(record, following.prepare if following is not None else when_measured)
                    done.heed()
                except KeyboardInterrupt:
                    _note_not_begun(run, passes[passes.index(done) + 1 :])
                    raise
                except PassError as error:
                    if is_full_disk(error):
                        done.give_room()
                        save_if_possible(run)  # else the record would say that the pass is running
                    if not done.plan.may_fail:
                        raise
                    unasked = not done.plan.asked and not isinstance(error, OutputsDifferError)
                    failure = failure or (None if unasked else error)
                finally:
                    done.end()
        finally:
            for one in passes:
                one.end()
    return failure


def _note_not_begun(run: RunDirectory, passes: Sequence[Pass]) -> None:
    """Those that should have come after the one that was interrupted."""
    for one in passes:
        reason = "the run was interrupted before it began"
        run.manifest.passes.append(PassRecord(name=one.plan.name, status="interrupted", reason=reason))
    save_if_possible(run)
