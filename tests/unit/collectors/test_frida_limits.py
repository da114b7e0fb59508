"""Limits under which frida would end the process are told before."""

from __future__ import annotations

import resource
import sys
from pathlib import Path

import pytest

from collectors.instrumented.frida_helper import FILE_BYTES, IMPORT_BYTES, SPACE_BYTES, require_limits
from hwprof.errors import HwprofError


@pytest.mark.parametrize(
    ("which", "allowed", "says"),
    [
        (resource.RLIMIT_NOFILE, 12, r"28 file descriptors .* of 12 in all.*ulimit -n"),
        (
            resource.RLIMIT_FSIZE,
            FILE_BYTES - 1,
            r"up to 36 MiB, and none may be larger than 35 MiB.*ulimit -f",
        ),
        (resource.RLIMIT_AS, 1 << 30, r"of 1024 MiB of address space are in use.*ulimit -v"),
        (resource.RLIMIT_AS, 1 << 46, None),
        (resource.RLIMIT_NOFILE, 65_536, None),
        (resource.RLIMIT_FSIZE, FILE_BYTES, None),
        (None, 0, None),
    ],
)
def test_they_are_named_with_what_raises_them(
    which: int | None, allowed: int, says: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    infinite = resource.RLIM_INFINITY
    monkeypatch.setattr(
        resource, "getrlimit", lambda one: (allowed, infinite) if one == which else (infinite, infinite)
    )
    if says is None:
        require_limits()
        return
    with pytest.raises(HwprofError, match=says):
        require_limits()


def test_importing_it_takes_more_addresses_than_what_comes_then(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its library's own runtime ended the process, before the limits were looked at."""
    used = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
    allowed = used + SPACE_BYTES + IMPORT_BYTES // 2
    monkeypatch.setattr(resource, "getrlimit", lambda which: (allowed, allowed))
    monkeypatch.setitem(sys.modules, "frida", sys)
    require_limits()
    monkeypatch.delitem(sys.modules, "frida")
    with pytest.raises(HwprofError, match="address space"):
        require_limits()
