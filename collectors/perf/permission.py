"""Why counting is refused or incomplete here, and what to do about it."""

from __future__ import annotations

import errno
from pathlib import Path

from collectors.perf.plan import Dropped
from hwprof.hardware import machine, perf_event

LOWER_PARANOID = "sudo sysctl kernel.perf_event_paranoid=1"


def why_not_allowed(error: OSError, root: Path = machine.ROOT) -> Dropped:
    """The reason and the remedy where perf_event_open fails with ``error`` even for a software event of one's own."""
    level = perf_event.paranoid_level(root)
    if error.errno == errno.EACCES and level is not None and level > 2:
        return Dropped(f"kernel.perf_event_paranoid is {level}: ordinary users may not count anything", LOWER_PARANOID)
    if error.errno in (errno.EPERM, errno.EACCES):
        if in_container(root):
            return Dropped(
                "the container's seccomp filter refuses perf_event_open",
                "start the container with --cap-add PERFMON (or --security-opt seccomp=unconfined)",
            )
        return Dropped(
            f"the kernel refuses perf_event_open ({error.strerror}; kernel.perf_event_paranoid is {level})",
            LOWER_PARANOID,
        )
    if error.errno == errno.ENOSYS or level is None:
        return Dropped(
            f"this kernel has no perf_event_open ({error.strerror})",
            "use a kernel with CONFIG_PERF_EVENTS, outside of sandboxes such as gVisor",
        )
    if error.errno == errno.EMFILE:
        return Dropped("there are no file descriptors left for counters", "raise the limit: ulimit -n 65536")
    return Dropped(f"perf_event_open fails ({error.strerror})")


def why_no_hardware(root: Path = machine.ROOT) -> Dropped:
    """The reason and the remedy where software events count and hardware ones do not."""
    hypervisor = machine.hypervisor(root)
    if hypervisor is not None:
        name = "the hypervisor" if hypervisor == "unknown" else f"the hypervisor ({hypervisor})"
        return Dropped(
            f"{name} shows this virtual machine no PMU",
            "give it one (QEMU/KVM: -cpu host,pmu=on; clouds: a bare-metal instance), or run on real hardware",
        )
    if in_container(root):
        return Dropped("no PMU is visible from inside this container", "run outside of the container")
    return Dropped(
        "the kernel has no driver for this processor's PMU",
        "update the kernel, or enable the PMU in the firmware's settings",
    )


def why_not_on_every_core(root: Path = machine.ROOT) -> Dropped | None:
    """Where cores of two kinds have a PMU each, the kernel counts its general events on one kind only; else None."""
    names = machine.pmus(root)
    if {"cpu_core", "cpu_atom"} <= set(names):
        return Dropped(
            "hardware events count on the performance cores only: time on efficiency cores is in running < enabled",
            "taskset -c $(cat /sys/devices/cpu_core/cpus) keeps the run on performance cores",
        )
    kinds = [name for name in names if name.startswith(("armv8_", "armv9_"))]
    if len(kinds) > 1:
        return Dropped(
            f"hardware events count on one kind of core only ({', '.join(kinds)}): the rest is in running < enabled",
            f"taskset -c $(cat /sys/bus/event_source/devices/{kinds[-1]}/cpus) keeps the run on one kind",
        )
    return None


def in_container(root: Path = machine.ROOT) -> bool:
    """Whether this looks like a container (Docker, Podman, Kubernetes, LXC)."""
    if (root / ".dockerenv").exists() or (root / "run/.containerenv").exists():
        return True
    try:
        return b"container=" in (root / "proc/1/environ").read_bytes()
    except OSError:
        return False
