"""Where the tools' own files lie."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from hwprof.printable import is_text
from hwprof.run import details
from hwprof.run.manifest import PassRecord
from hwprof.run.regular_files import is_regular
from hwprof.run.roles import Role


def raw_files(run: Path, record: PassRecord, role: Role) -> list[str]:
    """Those of a pass's collectors of that role, relative to the run's folder; only what is there."""
    return [
        str(file)
        for one in record.collectors
        if one.role is role
        for name in details.own_files(one.detail)
        if all(_is_name(part) for part in (record.name, one.name, name))
        and is_regular(run / (file := PurePosixPath("raw", record.name, one.name, name)))
    ]


def _is_name(part: str) -> bool:
    """Of a file in a folder, and of nothing outside of it: a run may be anybody's."""
    return is_text(part) and "\0" not in part and part not in ("", ".", "..") and "/" not in part
