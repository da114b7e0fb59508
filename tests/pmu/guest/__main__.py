"""Runs jobs inside the guest: ``python3 -m tests.pmu.guest NAME...`` leaves $OUT/NAME.json of each."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.pmu.guest import counting, papi_work, sampling, scarcity, users

JOBS = {
    job.__name__: job
    for job in (
        counting.known_loops,
        counting.threads_come_and_go,
        counting.many_events,
        counting.a_dead_event,
        counting.what_the_pmu_lacks,
        counting.defaults,
        sampling.sampled_loops,
        sampling.counted_and_sampled,
        sampling.sample_a_little,
        sampling.ordinary_samplers,
        scarcity.scarce_counters,
        scarcity.hold,
        users.what_is_there,
        users.ordinary_user,
        users.papi_available,
        users.papi_at_levels,
        users.events,
        papi_work.papi_beside_perf,
        papi_work.papi_in_turn,
    )
}


def main(names: Sequence[str]) -> None:
    out = Path(os.environ["OUT"])
    for name in names:
        (out / f"{name}.json").write_text(json.dumps(JOBS[name]()))


if __name__ == "__main__":
    main(sys.argv[1:])
