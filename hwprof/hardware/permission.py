"""Why counting is refused or incomplete here, and what to do about it."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from hwprof.hardware import machine, perf_event
from hwprof.hardware.countable import Countable
from hwprof.unavailable import Unavailable

LOWER_PARANOID = "sudo sysctl kernel.perf_event_paranoid=1"

MOST_NAMES = 3
"""As many processes as a note names."""


def why_not_allowed(error: OSError, root: Path = machine.ROOT) -> Unavailable:
    """The reason and the remedy where perf_event_open fails with ``error`` even for a software event of one's own."""
    level = perf_event.paranoid_level(root)
    if error.errno == errno.EACCES and level is not None and level > 2:
        return Unavailable(
            f"kernel.perf_event_paranoid is {level}: ordinary users may not count anything", LOWER_PARANOID
        )
    if error.errno in (errno.EPERM, errno.EACCES):
        if in_container(root):
            return Unavailable(
                "the container's seccomp filter refuses perf_event_open",
                "start the container with --cap-add PERFMON (or --security-opt seccomp=unconfined)",
            )
        return Unavailable(
            f"the kernel refuses perf_event_open ({error.strerror}; kernel.perf_event_paranoid is {level})",
            LOWER_PARANOID,
        )
    if error.errno == errno.ENOSYS or level is None:
        return Unavailable(
            f"this kernel has no perf_event_open ({error.strerror})",
            "use a kernel with CONFIG_PERF_EVENTS, outside of sandboxes such as gVisor",
        )
    if error.errno == errno.EMFILE:
        return Unavailable("there are no file descriptors left for counters", "raise the limit: ulimit -n 65536")
    return Unavailable(f"perf_event_open fails ({error.strerror})")


def why_no_hardware(root: Path = machine.ROOT) -> Unavailable:
    """The reason and the remedy where software events count and hardware ones do not."""
    hypervisor = machine.hypervisor(root)
    if hypervisor is not None:
        name = "the hypervisor" if hypervisor == "unknown" else f"the hypervisor ({hypervisor})"
        return Unavailable(
            f"{name} shows this virtual machine no PMU",
            "give it one (QEMU/KVM: -cpu host,pmu=on; clouds: a bare-metal instance), or run on real hardware",
        )
    if in_container(root):
        return Unavailable("no PMU is visible from inside this container", "run outside of the container")
    return Unavailable(
        "the kernel has no driver for this processor's PMU",
        "update the kernel, or enable the PMU in the firmware's settings",
    )


def why_refused(event: Countable, error: OSError) -> Unavailable:
    """The reason and the remedy where this event alone cannot be opened, and others can."""
    code = errno.errorcode.get(error.errno or 0, str(error.errno))
    if event.kind == "hardware" and error.errno in (errno.ENOENT, errno.EOPNOTSUPP, errno.ENODEV, errno.EINVAL):
        return Unavailable(f"not offered by this machine's PMU ({code})", "hwprof events shows what is")
    if error.errno in (errno.EACCES, errno.EPERM):
        return Unavailable(f"the kernel allows it to administrators only ({code})", LOWER_PARANOID)
    return Unavailable(f"the kernel refuses it ({error.strerror})")


def who_holds_counters(root: Path = machine.ROOT) -> Unavailable:
    """Who has the hardware counters that are missing, and how to get them back, as far as that can be told."""
    holders, remedies = [], []
    users = perf_users(root)
    if users:
        holders.append(f"{', '.join(users[:MOST_NAMES])} may hold them")
        remedies.append("stop other profilers")
    if _text(root / "proc/sys/kernel/nmi_watchdog") == "1":
        holders.append("the NMI watchdog may hold one")
        remedies.append("sudo sysctl kernel.nmi_watchdog=0")
    if holders:
        return Unavailable(", ".join(holders), "; ".join(remedies))
    if machine.hypervisor(root) is not None:
        return Unavailable(
            "another program holds them, or the hypervisor shows fewer than the processor has",
            "stop other profilers; only real hardware has all counters",
        )
    return Unavailable("another program holds them", "stop other profilers: sudo lsof | grep perf_event shows them")


def perf_users(root: Path = machine.ROOT) -> list[str]:
    """The other processes that have perf events open, as far as this user may see them: ``perf (pid 123)``."""
    found = []
    for folder in sorted((root / "proc").glob("[0-9]*")):
        if int(folder.name) == os.getpid():
            continue
        try:
            if any("[perf_event]" in str(fd.readlink()) for fd in (folder / "fd").iterdir()):
                found.append(f"{_text(folder / 'comm')} (pid {folder.name})")
        except OSError:  # it has ended, or is another user's
            continue
    return found


def in_container(root: Path = machine.ROOT) -> bool:
    """Whether this looks like a container (Docker, Podman, Kubernetes, LXC)."""
    if (root / ".dockerenv").exists() or (root / "run/.containerenv").exists():
        return True
    try:
        return b"container=" in (root / "proc/1/environ").read_bytes()
    except OSError:
        return False


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return ""
