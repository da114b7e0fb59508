"""Edges read by the C function and by Python: the same bytes, and never a run that fails for want of a compiler."""

from __future__ import annotations

import mmap
import os
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from collectors.shared.counting import group_reads, group_reads_library
from collectors.shared.counting.group_reads import GroupReads, NativeGroupReads, PythonGroupReads, make_group_reads
from collectors.shared.counting.group_reads_library import NoLibraryError, status
from hwprof.c_compiler import compiled
from tests.support.requirements import require_tool

Files = Callable[[bytes], int]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty cache folder, and nothing loaded from another one."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    group_reads_library.library.cache_clear()
    yield tmp_path / "hwprof"
    group_reads_library.library.cache_clear()


@pytest.fixture(scope="module")
def native(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], NativeGroupReads]]:
    """Makes group reads of the compiled kind."""
    require_tool("cc")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        patch.delenv("CC", raising=False)
        group_reads_library.library.cache_clear()
        code = group_reads_library.library()
    yield lambda: NativeGroupReads(code, doorbells=False)
    group_reads_library.library.cache_clear()


@pytest.fixture
def files() -> Iterator[Files]:
    """Makes descriptors that give these bytes and then end."""
    made: list[int] = []

    def make(content: bytes) -> int:
        made.append(os.memfd_create("rows"))
        os.write(made[-1], content)
        os.lseek(made[-1], 0, os.SEEK_SET)
        return made[-1]

    yield make
    for fd in made:
        os.close(fd)


def begin(reads: GroupReads, fds: Sequence[int], orders: dict[int, Sequence[int]], size: int = 8) -> None:
    reads.begin(fds, [size] * len(fds), [0] * len(fds), orders)


edge_lists = st.lists(
    st.tuples(
        st.lists(st.tuples(st.integers(1, 9).map(lambda words: 8 * words), st.binary(max_size=400)), max_size=5),
        st.dictionaries(st.integers(0, 3), st.lists(st.integers(0, 4), max_size=6), max_size=4),
        st.lists(st.integers(0, 3), max_size=12),
        st.booleans(),
    ),
    min_size=1,
    max_size=4,
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(edge_lists)
def test_c_and_python_read_the_same_bytes(
    native: Callable[[], NativeGroupReads],
    files: Files,
    course: list[tuple[list[tuple[int, bytes]], dict[int, list[int]], list[int], bool]],
) -> None:
    """For any sizes, orders and courses of edges, files that end too early included."""
    taken = []
    for reads in (native(), PythonGroupReads()):
        edges = [reads.reader(mark) for mark in range(4)]
        seen = []
        for targets, orders, marks, take in course:
            fds = [files(content) for _, content in targets]
            inside = {mark: [at for at in order if at < len(fds)] for mark, order in orders.items()}
            reads.begin(fds, [size for size, _ in targets], [0] * len(fds), inside)
            for mark in marks:
                edges[mark]()
            if take:
                seen.append(reads.take())
        seen.append(reads.take())
        taken.append((seen, reads.edges))
    assert taken[0] == taken[1]
    assert taken[0][1] == sum(len(marks) for _, _, marks, _ in course)


@pytest.mark.parametrize("kind", ["native", "python"])
def test_rows_come_in_the_order_of_edges_and_readers(
    native: Callable[[], NativeGroupReads], files: Files, kind: str
) -> None:
    reads: GroupReads = native() if kind == "native" else PythonGroupReads()
    first, second = reads.reader(7), reads.reader(200)
    begin(reads, [files(b"a1______a2______"), files(b"b1______b2______")], {7: [0, 1], 200: [1, 0]})
    second()
    first()
    assert reads.take() == (bytes([200, 7]), b"b1______a1______a2______b2______")
    assert reads.take() == (b"", b"")
    assert reads.edges == 2


@pytest.mark.parametrize("kind", ["native", "python"])
def test_a_row_that_does_not_come_whole_is_all_ones(
    native: Callable[[], NativeGroupReads], files: Files, kind: str
) -> None:
    reads: GroupReads = native() if kind == "native" else PythonGroupReads()
    closed = os.memfd_create("closed")
    os.close(closed)
    begin(reads, [files(b"whole___"), files(b"half"), files(b""), closed], {0: range(4)})
    reads.reader(0)()
    assert reads.take()[1] == b"whole___" + b"\xff" * 24


def test_a_buffer_that_is_full_grows(native: Callable[[], NativeGroupReads], files: Files) -> None:
    reads = native()
    content = bytes(range(256)) * (20 * group_reads.RESERVE[0] // 256)
    begin(reads, [files(content)], {0: [0]}, size=len(content) // 128)
    edge = reads.reader(0)
    for _ in range(128):
        edge()
    begin(reads, [files(b"x" * 8)], {0: [0]})
    edge()
    assert reads.take() == (bytes(129), content + b"x" * 8)


def test_a_function_that_outlives_its_buffer_reads_nothing(
    native: Callable[[], NativeGroupReads], files: Files
) -> None:
    fd = files(b"12345678")
    reads = native()
    begin(reads, [fd], {0: [0]})
    edge = reads.reader(0)
    del reads
    edge()
    assert os.lseek(fd, 0, os.SEEK_CUR) == 0


def test_a_position_without_a_descriptor_is_refused(native: Callable[[], NativeGroupReads], files: Files) -> None:
    with pytest.raises(IndexError):
        begin(native(), [files(b"")], {0: [1]})


# --- doorbells


class Bell:
    """A page as the kernel has one for each event, rung by hand; and descriptors to read rows from."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.fd = os.memfd_create("page")
        os.ftruncate(self.fd, mmap.PAGESIZE)
        self._page = mmap.mmap(self.fd, mmap.PAGESIZE)
        monkeypatch.setattr(group_reads, "_doorbell", lambda code, tid: code.group_reads_map(self.fd))

    def ring(self, moves: int = 2) -> None:
        (lock,) = struct.unpack_from("=I", self._page, 8)
        struct.pack_into("=I", self._page, 8, lock + moves)


@pytest.fixture
def bell(monkeypatch: pytest.MonkeyPatch) -> Bell:
    return Bell(monkeypatch)


ANYBODY = 999_999_999  # a thread number that is nobody's
SURE = 1


def watched(native: Callable[[], NativeGroupReads], fd: int) -> NativeGroupReads:
    reads = NativeGroupReads(native()._code, frozenset({SURE}), doorbells=True)
    reads.begin([fd], [8], [ANYBODY], {0: [0], SURE: [0]})
    return reads


def test_a_thread_whose_bell_did_not_ring_is_read_until_two_rows_agree(
    native: Callable[[], NativeGroupReads], files: Files, bell: Bell
) -> None:
    fd = files(b"running_sleeps__sleeps__awake___awake___more____")
    reads = watched(native, fd)
    edge = reads.reader(0)
    for _ in range(9):
        edge()
    assert os.lseek(fd, 0, os.SEEK_CUR) == 24
    bell.ring()
    for _ in range(9):
        edge()
    assert os.lseek(fd, 0, os.SEEK_CUR) == 40
    assert reads.take()[1] == b"running_" + 8 * b"sleeps__" + 9 * b"awake___"


def test_a_bell_that_is_being_rung_counts_as_rung(
    native: Callable[[], NativeGroupReads], files: Files, bell: Bell
) -> None:
    fd = files(8 * b"sleeps__")
    reads = watched(native, fd)
    bell.ring(1)
    for _ in range(8):
        reads.reader(0)()
    assert os.lseek(fd, 0, os.SEEK_CUR) == 64


def test_a_certain_reader_reads_sleepers_and_finds_out_a_bell_that_does_not_ring(
    native: Callable[[], NativeGroupReads], files: Files, bell: Bell
) -> None:
    fd = files(b"sleeps__sleeps__sleeps__ran_____more____")
    reads = watched(native, fd)
    edge, certain = reads.reader(0), reads.reader(SURE)
    edge(), edge(), edge()
    assert os.lseek(fd, 0, os.SEEK_CUR) == 16
    certain()
    trusted = [reads.doorbells]
    certain()
    trusted.append(reads.doorbells)
    assert trusted == [True, False]
    edge()
    assert reads.take()[1] == 4 * b"sleeps__" + b"ran_____more____"


def test_a_new_beginning_knows_of_no_sleeper(native: Callable[[], NativeGroupReads], files: Files, bell: Bell) -> None:
    reads = watched(native, files(8 * b"sleeps__"))
    edge = reads.reader(0)
    edge(), edge(), edge()
    fd = files(b"another_")
    reads.begin([fd], [8], [ANYBODY], {0: [0]})
    edge()
    assert os.lseek(fd, 0, os.SEEK_CUR) == 8


def test_a_forked_child_has_no_doorbells_and_reads(
    native: Callable[[], NativeGroupReads], files: Files, bell: Bell
) -> None:
    reads = watched(native, files(b"sleeps__sleeps__awake___"))
    edge = reads.reader(0)
    edge(), edge(), edge()
    child = os.fork()
    if child == 0:
        reads._code.group_reads_unmap(reads._pages[ANYBODY])  # as the kernel does with the page of an event
        edge()
        os._exit(0 if reads.take()[1][-8:] == b"awake___" else 1)
    assert os.waitpid(child, 0)[1] == 0


# --- building


def test_a_broken_compiler_leaves_python(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "sh -c 'echo there is a hole in it >&2; exit 1'")
    assert isinstance(make_group_reads(), PythonGroupReads)
    with pytest.raises(NoLibraryError, match="the C compiler failed: there is a hole in it"):
        group_reads_library.library()
    assert list(cache.iterdir()) == []


def test_a_compiler_that_makes_nonsense_leaves_python(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And nothing of it in the cache: the next compiler may do better."""
    monkeypatch.setenv("CC", "true")
    reads = make_group_reads()
    assert isinstance(reads, PythonGroupReads)
    assert "does not load: " in str(reads.why) and reads.why is not None and reads.why.remedy
    assert list(cache.iterdir()) == []


def test_without_a_compiler_python_reads(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", str(cache))
    assert isinstance(make_group_reads(), PythonGroupReads)
    assert status() == "python (no C compiler)"


def test_a_folder_that_others_may_write_to_is_not_run_from(cache: Path) -> None:
    cache.mkdir()
    cache.chmod(0o777)
    assert status() == f"python (others may write to the cache folder {cache})"
    assert isinstance(make_group_reads(), PythonGroupReads)


def test_no_cache_folder_leaves_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    group_reads_library.library.cache_clear()
    assert isinstance(make_group_reads(), PythonGroupReads)
    assert status().startswith("python (no cache folder: ")


def test_it_is_compiled_once_and_then_found(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require_tool("cc")
    monkeypatch.setenv("CC", "cc")
    assert status() == "native (compiled at first use by cc)"
    assert isinstance(make_group_reads(), NativeGroupReads)
    group_reads_library.library.cache_clear()
    monkeypatch.setenv("CC", "false")
    assert isinstance(make_group_reads(), NativeGroupReads)
    assert status() == "native"


def test_processes_that_build_at_once_all_get_it(cache: Path) -> None:
    require_tool("cc")
    program = (
        "import sys; from collectors.shared.counting import group_reads; sys.stdin.read(1);"
        "assert isinstance(group_reads.make_group_reads(), group_reads.NativeGroupReads)"
    )
    command = [sys.executable, "-c", program]
    environment = {name: value for name, value in os.environ.items() if name != "CC"}
    started = [subprocess.Popen(command, stdin=subprocess.PIPE, env=environment) for _ in range(4)]
    waits = [threading.Thread(target=process.communicate, args=(b"x",)) for process in started]
    for wait in waits:
        wait.start()
    for wait in waits:
        wait.join()
    assert [process.returncode for process in started] == [0] * 4
    assert [path.suffix for path in cache.iterdir()] == [".so"]


def _cut(library: Path) -> None:
    os.truncate(library, library.stat().st_size // 2)


def _flipped(library: Path) -> None:
    content = bytearray(library.read_bytes())
    content[len(content) // 3] ^= 1
    library.write_bytes(content)


def _pipe(library: Path) -> None:
    library.unlink()
    os.mkfifo(library)


@pytest.mark.parametrize("damage", [_cut, _flipped, _pipe, Path.unlink])
def test_a_library_that_is_not_what_was_compiled_is_made_anew(damage: Callable[[Path], None], cache: Path) -> None:
    """Its code would end the process, or be no code of ours; what is no file would be waited for."""
    require_tool("cc")
    group_reads_library.library()
    (library,) = cache.glob("group_reads-*.so")
    whole = library.read_bytes()
    damage(library)
    assert status().startswith("native (compiled at first use by ")
    assert compiled(group_reads_library.NAME, group_reads_library._source()) == library
    assert library.read_bytes() == whole and status() == "native"


def test_what_cannot_be_replaced_leaves_python(cache: Path) -> None:
    require_tool("cc")
    group_reads_library.library()
    (library,) = cache.glob("group_reads-*.so")
    library.unlink()
    (library / "folder").mkdir(parents=True)
    group_reads_library.library.cache_clear()
    reads = make_group_reads()
    assert isinstance(reads, PythonGroupReads) and "Is a directory" in str(reads.why)
