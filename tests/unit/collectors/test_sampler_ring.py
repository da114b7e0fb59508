"""A ring buffer's protocol against a kernel of the test's own: heads, tails, and records over the ring's end."""

from __future__ import annotations

import mmap
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.sampler import ring as rings
from collectors.sampler.ring import PAGE, SMALLEST, Cursor, Ring, map_ring, ring_bytes

DATA = 2 * PAGE
HEAD, TAIL = 1024, 1032


class Kernel:
    """Writes records into shared memory as the kernel does: none that does not fit, and the head comes last."""

    def __init__(self, memory: mmap.mmap, start: int) -> None:
        self._memory = memory
        self.lost = 0
        struct.pack_into("<QQ", memory, HEAD, start, start)

    def write(self, record: bytes) -> bool:
        head, tail = struct.unpack_from("<QQ", self._memory, HEAD)
        if head + len(record) - tail > DATA:
            self.lost += 1
            return False
        for number, byte in enumerate(record):
            self._memory[PAGE + (head + number) % DATA] = byte
        struct.pack_into("<Q", self._memory, HEAD, head + len(record))
        return True


# None: the reader drains. A number: the kernel writes a record of so many words.
courses = st.lists(st.one_of(st.none(), st.integers(1, 200)), max_size=60)


@given(courses, st.integers(0, 2**40).map(lambda words: words * 8))
def test_what_the_kernel_wrote_comes_out_in_order_and_whole(course: list[int | None], start: int) -> None:
    with mmap.mmap(-1, PAGE + DATA) as memory:
        kernel, cursor = Kernel(memory, start), Cursor(memory, DATA)
        written, drained = bytearray(), bytearray()
        pieces: list[bytes] = []

        def keep(data: memoryview) -> None:
            pieces.append(bytes(data))

        for number, step in enumerate(course):
            if step is None:
                pieces.clear()
                taken = cursor.drain(keep)
                drained += b"".join(pieces)
                assert taken == sum(map(len, pieces))
                assert len(pieces) <= 2
                assert drained == written, "a drain empties the ring"
                assert struct.unpack_from("<Q", memory, HEAD) == struct.unpack_from("<Q", memory, TAIL)
            else:
                record = struct.pack("<Q", number) * step
                if kernel.write(record):
                    written += record
        cursor.drain(drained.extend)
        assert drained == written
        cursor.release()


def test_a_full_ring_takes_nothing_more_until_it_is_drained() -> None:
    with mmap.mmap(-1, PAGE + DATA) as memory:
        kernel, cursor = Kernel(memory, 8), Cursor(memory, DATA)
        assert kernel.write(b"a" * DATA)
        assert not kernel.write(b"b" * 8)
        out = bytearray()
        assert cursor.drain(out.extend) == DATA
        assert out == b"a" * DATA
        assert kernel.write(b"b" * 8)
        assert kernel.lost == 1
        cursor.release()


def test_a_ring_holds_more_than_a_second() -> None:
    assert ring_bytes(1) == SMALLEST
    assert ring_bytes(300_000) == 1 << 19
    assert ring_bytes(1 << 19) == 1 << 19
    assert ring_bytes((1 << 19) + 1) == 1 << 20


def test_a_smaller_ring_is_taken_where_memory_may_not_be_locked(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    class Refusing(Ring):
        def __init__(self, fd: int, data_bytes: int) -> None:
            asked.append(data_bytes)
            if data_bytes > SMALLEST:
                raise PermissionError(1, "Operation not permitted")
            self.data_bytes = data_bytes

    monkeypatch.setattr(rings, "Ring", Refusing)
    assert map_ring(3, 4 * SMALLEST).data_bytes == SMALLEST
    assert asked == [4 * SMALLEST, 2 * SMALLEST, SMALLEST]


def test_no_ring_at_all_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    class Refusing(Ring):
        def __init__(self, fd: int, data_bytes: int) -> None:
            raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(rings, "Ring", Refusing)
    with pytest.raises(PermissionError):
        map_ring(3, 4 * SMALLEST)
    why = rings.why_no_ring()
    assert "lock" in why.reason and "ulimit -l" in str(why.remedy)
