"""What names addresses later: which file each executable address of the process came from, and what makes JIT
compilers leave the names of their code."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Final

from collectors.sampler.records import Mapping
from hwprof.hardware.perf_sampling import PROT_EXEC

JIT_ENVIRONMENT: Final = {"ONEDNN_JIT_PROFILE": "2"}
"""oneDNN writes the names and addresses of the kernels that it generates, as ``perf`` wants them."""

_LINE: Final = re.compile(
    r"(?P<begin>[0-9a-f]+)-(?P<end>[0-9a-f]+) (?P<rights>\S{4}) (?P<offset>[0-9a-f]+) \S+ \d+\s*(?P<file>.*)"
)
NO_FILE: Final = "//anon"
"""As the kernel's own records name it."""


def parse_maps(text: str, pid: int, time_ns: int) -> list[Mapping]:
    """The executable mappings of /proc/PID/maps."""
    found = []
    for line in text.splitlines():
        match = _LINE.fullmatch(line)
        if match is None or "x" not in match["rights"]:
            continue
        begin, end = int(match["begin"], 16), int(match["end"], 16)
        offset, file = int(match["offset"], 16), match["file"] or NO_FILE
        found.append(Mapping(time_ns, pid, begin, end - begin, offset, file, PROT_EXEC))
    return found


def mappings_now(pid: int) -> list[Mapping]:
    """Those of a process as it is; none if it has ended or is another user's."""
    try:
        text = Path(f"/proc/{pid}/maps").read_text(errors="surrogateescape")
    except OSError:
        return []
    return parse_maps(text, pid, time.monotonic_ns())
