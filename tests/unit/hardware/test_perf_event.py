from __future__ import annotations

import struct
from pathlib import Path

import pytest

from hwprof.hardware import perf_event
from hwprof.hardware.perf_event import Attributes


def test_attributes_are_laid_out_as_the_kernel_reads_them() -> None:
    packed = Attributes(type=1, config=0x0123456789ABCDEF, exclude_kernel=True).pack()
    assert len(packed) == 64
    assert struct.unpack_from("=II", packed) == (1, 64)
    assert struct.unpack_from("=Q", packed, 8) == (0x0123456789ABCDEF,)
    assert struct.unpack_from("=Q", packed, 32) == (0b1011,)  # read_format: enabled, running, group
    assert struct.unpack_from("=Q", packed, 40) == (0b1100001,)  # disabled, exclude_kernel, exclude_hv
    assert Attributes(1, 1, disabled=False).pack()[40:48] == bytes(8)


def test_the_drivers_words_and_what_is_left_out() -> None:
    packed = Attributes(type=4, config=0x20C7, config1=0x1234, exclude_user=True).pack()
    assert struct.unpack_from("=II", packed) == (4, 64)  # the first version, which every kernel takes
    assert struct.unpack_from("=Q", packed, 56) == (0x1234,)
    assert struct.unpack_from("=Q", packed, 40) == (0b10001,)  # disabled, exclude_user


def test_the_structure_grows_only_where_the_second_version_is_needed() -> None:
    packed = Attributes(type=4, config=1, config1=2, config2=3).pack()
    assert len(packed) == 72
    assert struct.unpack_from("=I", packed, 4) == (72,)
    assert struct.unpack_from("=QQ", packed, 56) == (2, 3)


def test_a_read_has_a_header_and_one_word_an_event() -> None:
    assert perf_event.group_read_bytes(4) == 8 * 7


@pytest.mark.parametrize(("text", "level"), [("2\n", 2), ("-1\n", -1), ("3", 3), ("", None), (None, None)])
def test_paranoid_level(tmp_path: Path, text: str | None, level: int | None) -> None:
    if text is not None:
        file = tmp_path / "proc/sys/kernel/perf_event_paranoid"
        file.parent.mkdir(parents=True)
        file.write_text(text)
    assert perf_event.paranoid_level(tmp_path) == level


def test_an_architecture_without_a_known_number_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "vax")
    perf_event._syscall.cache_clear()
    with pytest.raises(OSError, match="vax"):
        perf_event.open_event(Attributes(1, 1))
    perf_event._syscall.cache_clear()


def test_a_group_that_does_not_open_leaves_nothing_open(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[int] = []
    closed: list[int] = []

    def open_two(attributes: object, tid: int, group_fd: int, cpu: int) -> int:
        if len(opened) == 2:
            raise OSError(22, "the group does not fit")
        assert group_fd == (opened[0] if opened else -1)
        opened.append(100 + len(opened))
        return opened[-1]

    monkeypatch.setattr(perf_event, "open_event", open_two)
    monkeypatch.setattr("os.close", closed.append)
    with pytest.raises(OSError, match="does not fit"):
        perf_event.open_group([Attributes(1, 1)] * 3)
    assert closed == opened[::-1], "members before their leader"
