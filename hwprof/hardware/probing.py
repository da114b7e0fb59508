"""Whether an event opens here, tried on this very process for a moment."""

from __future__ import annotations

import errno
import os

from hwprof.hardware import perf_event
from hwprof.hardware.countable import Countable
from hwprof.hardware.machine import ROOT
from hwprof.hardware.perf_event import Attributes
from hwprof.hardware.pmu import find
from hwprof.hardware.resolution import ON_PAPER, no_pmu
from hwprof.unavailable import Unavailable

LOWER_PARANOID = "sudo sysctl kernel.perf_event_paranoid={}"


def why_not(countable: Countable) -> Unavailable | None:
    """Why the kernel does not open the event; None where it does. Opening is not counting: it may never get a counter,
    which only a run shows."""
    if countable.code == ON_PAPER:
        return no_pmu(countable.pmu or "")
    tid, cpu = 0, -1
    if countable.event.pmu is not None:
        places = [pmu.cpumask for pmu in find(ROOT, countable.pmu or "")]
        if places and places[0]:
            tid, cpu = perf_event.EVERY_PROCESS, places[0][0]
    code = countable.code
    last: OSError | None = None
    for without_kernel in (countable.exclude_kernel, True):
        attributes = Attributes(
            code.type,
            code.config,
            code.config1,
            code.config2,
            exclude_user=countable.exclude_user,
            exclude_kernel=without_kernel and cpu < 0,
        )
        try:
            os.close(perf_event.open_event(attributes, tid, cpu=cpu))
            return None
        except OSError as error:
            last = error
    assert last is not None
    return _reason(last, whole_machine=cpu >= 0)


def _reason(error: OSError, *, whole_machine: bool) -> Unavailable:
    if error.errno in (errno.EACCES, errno.EPERM):
        level = perf_event.paranoid_level()
        return Unavailable(
            f"this user may not count it (kernel.perf_event_paranoid is {level})",
            LOWER_PARANOID.format(0 if whole_machine else 1),
        )
    if error.errno in (errno.ENOENT, errno.EOPNOTSUPP, errno.ENODEV, errno.EINVAL):
        return Unavailable(f"this machine's PMU does not offer it ({errno.errorcode[error.errno]})")
    return Unavailable(f"the kernel refuses it ({error.strerror})")
