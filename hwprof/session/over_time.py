"""The iterations of a pass that goes on for some time, or until layers are known well. They are planned piece by
piece: what one takes is known when some are done. The last of the warm-up may have taken many times as long, or a part
of it. Pure but for the clock."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import msgspec

from hwprof.run.manifest import IterationRecord
from hwprof.session.plan import (
    ENOUGH_CALLS,
    FEWEST,
    FEWEST_WITH_BARE,
    MOST_BARE,
    REPETITIONS,
    PassPlan,
    schedule,
    with_bare,
)

FIRST_PIECE: Final = 0.1
MOST_FIRST: Final = 100
"""Of the time, and iterations: so much is planned by the last iteration of the warm-up, which does not know either what
hwprof itself does between very short ones."""

FIRST_BARE: Final = 2
"""Bare iterations of the first piece, at most."""

MOST: Final = 100_000
"""Iterations: no figure gets better by more, and each takes memory: half an hour of a model of 20 ms."""

WATCHED_CALLS: Final = 250_000
"""Of layers. What they leave takes memory (100 MB) and time when all is measured: of more iterations than that some,
evenly spread, watch their layers, and the others are bare."""


MOST_TIMES: Final = 10
"""As many iterations as planned a pass comes to that goes on until layers are known well: three times as well as by
these."""


CHEAP_S: Final = 0.5
"""Whoever waits for a run does not see that it takes so much longer; of a small model that is all iterations there can
be."""


def further(
    plan: PassPlan,
    planned: Sequence[IterationRecord],
    calls: int,
    event_sets: int,
    elapsed_s: Callable[[], float],
    in_reach: Callable[[float], bool],
) -> Iterator[list[IterationRecord]]:
    """Those that come after the ``planned`` ones, in one piece, of a pass that goes on until ``plan.precision`` is
    reached: as many as fit into what is left of ``plan.enough_s``; whoever does them may stop within it. Where
    that is not ``in_reach`` of so many times as many iterations, no more than take ``CHEAP_S``: on a machine that
    others use too, the user would wait for nothing. The rest is as of ``iterations``."""
    if plan.precision is None or plan.enough_s is None:
        return
    done = len(planned)
    most = MOST_TIMES * plan.iterations - done
    if calls:
        most = min(most, ENOUGH_CALLS // calls - done)
    each_s = elapsed_s() / done
    number = min(most, int((plan.enough_s - elapsed_s()) / each_s))
    if number > 0 and not in_reach((done + number) / done):
        number = min(number, int(CHEAP_S / each_s))
    if number > 0:
        records = schedule(0, number, event_sets, alternate=plan.alternate)
        if plan.bare_too:
            records = with_bare(records, most=MOST_BARE - sum(record.bare for record in planned))
        first = planned[-1].index + 1
        yield [msgspec.structs.replace(record, index=first + place) for place, record in enumerate(records)]


def iterations(
    plan: PassPlan, once_s: float, calls: int, event_sets: int, elapsed_s: Callable[[], float]
) -> Iterator[list[IterationRecord]]:
    """Piece by piece those that come next, until ``plan.time_s`` is over, or ``MOST`` are done; whoever does them may
    stop within a piece.

    ``once_s``: what one took that is done already; ``calls``: of layers, in each. ``elapsed_s`` is asked when all
    before are done. At least ``FEWEST`` iterations come, and ``REPETITIONS`` for each event set.
    """
    assert plan.time_s is not None
    done = watched = bare = 0
    least = max(FEWEST, REPETITIONS * event_sets)
    share, most, each_s = FIRST_PIECE, MOST_FIRST, once_s
    while done < MOST and ((left_s := plan.time_s - elapsed_s()) > 0 or not done):
        number = max(least, min(most, MOST - done, int(share * left_s / each_s)))
        watching = min(number, max(FEWEST, WATCHED_CALLS // calls - watched)) if calls else number
        records = schedule(0, watching, event_sets, alternate=plan.alternate)
        if plan.bare_too:
            records = with_bare(records, number - watching, FIRST_BARE if not done else MOST_BARE - bare)
        yield [
            msgspec.structs.replace(record, index=plan.warmup + done + place) for place, record in enumerate(records)
        ]
        done, watched = done + len(records), watched + watching
        bare += sum(record.bare for record in records)
        least, share, most, each_s = FEWEST_WITH_BARE, 1.0, sys.maxsize, elapsed_s() / done
