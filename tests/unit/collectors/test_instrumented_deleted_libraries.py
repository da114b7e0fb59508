"""Which loaded libraries have lost their files."""

from __future__ import annotations

from collectors.instrumented.deleted_libraries import begins_of_deleted_files

MAPS = """\
7f0000000000-7f0000001000 r--p 00000000 fe:00 11 /tmp/a library.so (deleted)
7f0000001000-7f0000002000 r-xp 00001000 fe:00 11 /tmp/a library.so (deleted)
7f0000002000-7f0000003000 r--p 00000000 fe:00 12 /usr/lib/kept.so
7f0000003000-7f0000004000 --xp 00000000 fe:00 13 /tmp/unreadable.so (deleted)
7f0000004000-7f0000005000 rwxp 00000000 00:00 0
7f0000005000-7f0000006000 r--s 00000000 00:01 14 /memfd:made (deleted)
"""


def test_the_first_mappings_of_deleted_files() -> None:
    found = list(begins_of_deleted_files(MAPS.splitlines()))
    assert found == [(0x7F0000000000, "/tmp/a library.so"), (0x7F0000005000, "/memfd:made")]
