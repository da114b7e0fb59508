"""The run directory: the only reader and writer of what a run keeps.

Every write is atomic (a temporary file beside the target, then a rename), and a pass's rows count only once the
manifest says that the pass is completed: a directory cut short at any moment reads as the passes finished by then.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shlex
import shutil
import tempfile
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hwprof.errors import OF_SIZE, DamagedError, HwprofError, UsageError, is_full_disk
from hwprof.run import digests
from hwprof.run import manifest as manifests
from hwprof.run.atomic import allowed_mode, atomic
from hwprof.run.manifest import MANIFEST_FILE, SCHEMA_VERSION, Manifest, PassRecord
from hwprof.run.regular_files import is_regular, read_regular
from hwprof.silence import silent_libraries

if TYPE_CHECKING:  # a kept report is shown without the tables, and so without polars
    import polars as pl

LATEST = "latest"
SHAPES: Final = ("input_shapes", "output_shapes")
LARGEST_MANIFEST: Final = 256 << 20
"""In bytes; a run of a large model keeps about one."""

MOST_OF_ONE_NAME: Final = 1000

AGAIN: Final = "another copy of the run, or hwprof collect again"
ANOTHER: Final = "a folder that hwprof collect has made, or another copy of this one"

BENCH_FILE: Final = "bench.json"
"""By which the folder of a bench is known, which holds no run."""

LITTLE_ROOM_BYTES: Final = 1 << 16
"""With less than that left, a device is full."""

GROWTH_BYTES: Final = 64 << 10
"""Of the manifest by one pass: its collectors, its tables' digests; of a small model half as much."""


class RunDirectory:
    """One run on disk: its manifest, its tables, and the files made from them."""

    def __init__(self, path: Path, manifest: Manifest) -> None:
        self.path = path
        self.manifest = manifest
        self._unchanged: set[str] = set()  # tables that were found to be what was written
        self._left_out: frozenset[str] = frozenset()
        self._ends_ns: dict[str, int] = {}  # by pass

    @classmethod
    def create(cls, root: Path, manifest: Manifest) -> RunDirectory:
        """A new directory ``root/manifest.name`` that holds the manifest from its first moment on.

        Raises ``HwprofError`` where the place cannot be written.
        """
        try:
            root.mkdir(parents=True, exist_ok=True)
            wanted = root / manifest.name
            staging = Path(tempfile.mkdtemp(dir=root, prefix=f".{manifest.name}."))
            try:
                (staging / "raw").mkdir()
                staging.chmod(allowed_mode(0o777))
                target = _placed(staging, wanted, manifest)
            finally:
                shutil.rmtree(staging, ignore_errors=True)
        except OSError as error:
            raise HwprofError(
                f"cannot write a run to {root}: {error.strerror or error}",
                OF_SIZE if error.errno == errno.EFBIG else "choose another place with --output",
            ) from error
        run = cls(target, manifest)
        run._point_latest()
        return run

    @classmethod
    def open(cls, path: Path) -> RunDirectory:
        """The run kept in ``path``; raises ``HwprofError`` where there is none or it cannot be read."""
        file = path / MANIFEST_FILE
        try:
            data = read_regular(file, LARGEST_MANIFEST)
            written = manifests.decode_version(data)
            if written.schema_version > SCHEMA_VERSION:  # what else it holds is not known here
                raise HwprofError(
                    f"{path} was written by hwprof {written.hwprof_version}, which is newer than this one",
                    "pip install --upgrade hwprof",
                )
            return cls(path, manifests.decode(data))
        except FileNotFoundError:
            raise _is_no_run(path) from None
        except OSError as error:
            raise HwprofError(f"cannot read {file}: {error.strerror}", ANOTHER) from error
        except RecursionError as error:
            raise HwprofError(f"{file} is damaged: it is nested too deeply", AGAIN) from error
        except ValueError as error:  # msgspec's errors, and bytes that are no text
            raise HwprofError(f"{file} is damaged: {error}", AGAIN) from error

    @classmethod
    def latest(cls, root: Path) -> RunDirectory:
        """The newest run below ``root``; raises ``UsageError`` where there is none."""
        folders = newest_first(root)
        if not folders:
            raise UsageError(f"no run in {root}/", "make one with: hwprof collect --model yolov7")
        return cls.open(folders[0])

    def save_manifest(self) -> None:
        """Writes the manifest as it stands now."""
        with atomic(self.path / MANIFEST_FILE) as part:
            part.write_bytes(manifests.encode(self.manifest))

    @contextmanager
    def room_for_manifest(self) -> Iterator[None]:
        """Takes the room that the manifest's next version needs, and gives it back at its end: how a pass ended can be
        written on a device that the pass has filled. Raises ``OSError`` where it is full already."""
        with tempfile.TemporaryFile(dir=self.path) as unnamed:  # whoever is killed leaves none
            try:
                os.posix_fallocate(unnamed.fileno(), 0, len(manifests.encode(self.manifest)) + GROWTH_BYTES)
            except OSError as error:
                if is_full_disk(error):
                    raise
            yield

    def completed_passes(self) -> list[PassRecord]:
        """The passes that ran to their end, in order."""
        return [record for record in self.manifest.passes if record.status == "completed"]

    def kept_passes(self) -> list[PassRecord]:
        """The passes whose rows count: completed ones, and interrupted ones that could keep what they had."""
        return [record for record in self.manifest.passes if record.status == "completed" or record.kept]

    def find_pass(self, name: str) -> PassRecord | None:
        """The completed pass of that name."""
        return next((record for record in self.completed_passes() if record.name == name), None)

    def append(self, table: str, rows: Path) -> None:
        """Moves the rows of a Parquet file (of ``write_table``, on the same device) to a table, without holding either
        in memory; those that are known by their key are there already."""
        import polars as pl

        from hwprof.run.schema import KEYS
        from hwprof.run.tables import scan_table

        target = self.path / f"{table}.parquet"
        if table not in KEYS and not target.exists() and not rows.is_symlink():
            self._announce(table, rows)
            rows.replace(target)
            return
        parts = [scan_table(path, table) for path in (target, rows) if path.exists()]
        rows_of_all = pl.concat(parts)
        if table in KEYS:
            rows_of_all = rows_of_all.unique(subset=KEYS[table], keep="first", maintain_order=True)
        with atomic(target) as part, _full_disk_told(part):
            _write_parquet(rows_of_all, part)
            self._announce(table, part)
        rows.unlink()

    def _announce(self, table: str, part: Path) -> None:
        """Before a table's file becomes another one the manifest knows both: whoever is ended in between leaves a run
        that is whole."""
        self.manifest.tables[table] = [*self.manifest.tables.get(table, [])[-1:], digests.of_file(part)]
        self._unchanged.discard(table)
        self.save_manifest()

    def _require_unchanged(self, table: str) -> None:
        """Raises ``DamagedError`` where a table's file is none of those that were written; each is looked at once."""
        from hwprof.run.tables import damaged

        file, written = self.path / f"{table}.parquet", self.manifest.tables.get(table)
        if table in self._unchanged or written is None:
            return
        if not os.path.lexists(file):
            raise damaged(file, "it is gone")
        with contextlib.suppress(OSError):  # who scans it says what cannot be read
            if is_regular(file) and not digests.is_one_of(file, written):
                if self._is_written_to(table, file):
                    raise HwprofError(f"{self.path} is being written to: {file.name} has more rows now", "once more")
                raise damaged(file, "it is not what hwprof wrote there: it has changed since, or is another run's")
        self._unchanged.add(table)

    def damage_elsewhere(self) -> Iterator[DamagedError]:
        """Of tables that nobody has read: each is looked at once."""
        for table in self.manifest.tables:
            try:
                self._require_unchanged(table)
            except DamagedError as error:
                yield error
            except HwprofError:  # it is being written to, which whoever reads it says
                continue

    def _is_written_to(self, table: str, file: Path) -> bool:
        """Whether a table is another one than when the run was opened because somebody measures."""
        try:
            now = RunDirectory.open(self.path).manifest.tables.get(table, [])
        except HwprofError:
            return False
        return now != self.manifest.tables.get(table) and digests.is_one_of(file, now)

    def without(self, tables: Collection[str]) -> RunDirectory:
        """The same run as if it had no rows in these tables."""
        found = RunDirectory(self.path, self.manifest)
        found._unchanged, found._left_out = self._unchanged, frozenset(tables)
        return found

    def until(self, ends_ns: Mapping[str, int]) -> RunDirectory:
        """The same run as if nothing had begun in these passes from these moments on."""
        found = self.without(self._left_out)
        found._ends_ns = dict(ends_ns)
        return found

    def scan(self, table: str) -> pl.LazyFrame:
        """The rows of the kept passes (all of ``layers``, which belongs to no pass); empty without any."""
        import polars as pl

        from hwprof.run.schema import TABLES
        from hwprof.run.tables import scan_table

        if table in self._left_out:
            return pl.LazyFrame(schema=TABLES[table])
        file = self.path / f"{table}.parquet"
        self._require_unchanged(table)
        if not os.path.lexists(file):  # a link to nowhere is damage
            return pl.LazyFrame(schema=TABLES[table])
        with self._silence(table):
            frame = scan_table(file, table)
        if self._bracketed_shapes:
            frame = frame.with_columns(_plain_shape(name) for name in SHAPES if name in TABLES[table])
        if "pass" not in TABLES[table]:
            return frame
        # a row of nobody is damage: it is kept for whoever looks for that
        kept = pl.col("pass").is_in([record.name for record in self.kept_passes()])
        return frame.filter(kept | pl.col("pass").is_null(), *self._begun(table))

    def _begun(self, table: str) -> Iterator[pl.Expr]:
        """What is true of rows that do not begin too late."""
        import polars as pl

        from hwprof.run.schema import BEGIN

        for name, end_ns in self._ends_ns.items() if table in BEGIN else ():
            late = (pl.col("pass") == name) & (pl.coalesce(BEGIN[table]) >= end_ns)
            yield ~late.fill_null(False)

    @cached_property
    def _bracketed_shapes(self) -> bool:
        """Whether the run is of the time when shapes were spelled ``[1,3,640,480]``."""
        import polars as pl

        from hwprof.run.tables import readable, scan_table

        file = self.path / "layers.parquet"
        if not file.exists():
            return False
        self._require_unchanged("layers")
        with self._silence("layers"), readable(file):
            known = scan_table(file, "layers").select(pl.col("output_shapes").drop_nulls().first()).collect()
        return known.height == 1 and str(known.item()).startswith("[")

    def scan_pass(self, table: str, name: str) -> pl.LazyFrame:
        """The rows of one of the kept passes."""
        import polars as pl

        return self.scan(table).filter((pl.col("pass") == name) | pl.col("pass").is_null())

    def of_pass(self, table: str, name: str, *chosen: pl.Expr) -> pl.DataFrame:
        """``scan_pass``, collected; those of the rows that are ``chosen``."""
        return self._whole(table, self.scan_pass(table, name).filter(*chosen))

    def count_by_pass(self, table: str) -> dict[str, int]:
        """How many rows each kept pass has; those that have none are left out."""
        return dict(self._collect(table, self.scan(table).group_by("pass").len()).iter_rows())

    def read(self, table: str) -> pl.DataFrame:
        """``scan``, collected."""
        return self._whole(table, self.scan(table))

    def require_values(self, table: str) -> None:
        """Raises ``HwprofError`` where rows that are going to be scanned lack what every row has."""
        from hwprof.run.tables import readable, require_values

        file, unsealed = self.path / f"{table}.parquet", self._is_unsealed(table)
        with self._silence(table), readable(file):
            require_values(file, table, self.scan(table), decode_all=unsealed)

    def memory_bytes(self, table: str) -> int:
        """What it takes at most, roughly, to analyse the table. Raises ``HwprofError``."""
        from hwprof.run.tables import memory_bytes

        file = self.path / f"{table}.parquet"
        if not file.exists():
            return 0
        self._require_unchanged(table)
        with self._silence(table):
            return memory_bytes(file, table)

    def _whole(self, table: str, rows: pl.LazyFrame) -> pl.DataFrame:
        from hwprof.run.tables import whole

        return whole(self.path / f"{table}.parquet", table, self._collect(table, rows))

    def _collect(self, table: str, rows: pl.LazyFrame) -> pl.DataFrame:
        from hwprof.run.tables import readable

        file = self.path / f"{table}.parquet"
        with self._silence(table), readable(file):
            return rows.collect()

    def _silence(self, table: str) -> contextlib.AbstractContextManager[None]:
        """Where a table is damaged, threads of polars' panic and print; of one that is sealed that is known before."""
        return silent_libraries() if self._is_unsealed(table) else contextlib.nullcontext()

    def _is_unsealed(self, table: str) -> bool:
        """Whether nothing says what its file was when it was written: an older version wrote it."""
        return table not in self.manifest.tables and (self.path / f"{table}.parquet").exists()

    def remove(self) -> None:
        """Takes the run off the disk."""
        shutil.rmtree(self.path, ignore_errors=True)
        link = self.path.parent / LATEST
        if link.is_symlink() and not link.exists():
            link.unlink()
            with contextlib.suppress(HwprofError):
                RunDirectory.latest(self.path.parent)._point_latest()

    def _point_latest(self) -> None:
        """``root/latest`` follows the newest run, where the file system has links; only a convenience."""
        link = self.path.parent / LATEST
        if link.exists() and not link.is_symlink():
            return
        staging = link.with_name(f".{LATEST}.{os.getpid()}")
        try:
            staging.unlink(missing_ok=True)
            staging.symlink_to(self.path.name)
            staging.replace(link)
        except OSError:
            staging.unlink(missing_ok=True)


def _is_no_run(path: Path) -> UsageError:
    if is_regular(path / BENCH_FILE):
        shown = f"hwprof bench --resume {shlex.quote(str(path))}, which shows it, or open {path / 'bench.html'}"
        return UsageError(f"{path} is a bench, and no run", shown)
    remedy = f"--root {shlex.quote(str(path))}, which holds runs" if newest_first(path) else ANOTHER
    return UsageError(f"{path} is not a run directory: it has no {MANIFEST_FILE}", remedy)


def newest_first(root: Path) -> list[Path]:
    """The folders of the runs below ``root``, whatever state these are in."""
    found = (
        file.parent for file in root.glob(f"*/{MANIFEST_FILE}") if is_regular(file) and not file.parent.is_symlink()
    )
    return sorted(found, key=lambda directory: directory.name, reverse=True)


def _placed(staging: Path, path: Path, manifest: Manifest) -> Path:
    """Moves the folder, with the manifest in it, to ``path``, or to one with a number where two runs begin within a
    second; another hwprof may take a name at any moment. Raises ``OSError``."""
    for target in (path, *(path.with_name(f"{path.name}-{number}") for number in range(2, MOST_OF_ONE_NAME))):
        if target.exists():
            continue
        manifest.name = target.name
        (staging / MANIFEST_FILE).write_bytes(manifests.encode(manifest))
        try:
            return staging.replace(target)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
    raise OSError(errno.EEXIST, f"{MOST_OF_ONE_NAME - 1} runs have the name {path.name}")


def _plain_shape(column: str) -> pl.Expr:
    """``[1,3,640,480] []`` as ``1x3x640x480 scalar``, and a list of tensors ``[[1,3],[1,4]]`` as ``(1x3,1x4)``."""
    import polars as pl

    text = pl.col(column)
    for old, new in (("[]", "[scalar]"), ("],[", ";"), (",", "x"), (";", ","), ("[[", "("), ("]]", ")")):
        text = text.str.replace_all(old, new, literal=True)
    return text.str.replace_all(r"[\[\]]", "")


def write_table(path: Path, table: str, rows: pl.DataFrame | pl.LazyFrame) -> None:
    """Writes a table's rows as Parquet, atomically, in the table's own columns and types."""
    from hwprof.run.schema import conform

    with atomic(path) as part, _full_disk_told(part):
        _write_parquet(conform(table, rows.lazy()), part)


def _write_parquet(rows: pl.LazyFrame, part: Path) -> None:
    """The file is opened here: a thread of polars' opens a path when it comes to it, and makes that file once more
    after the rows have failed and it was taken away."""
    with part.open("wb") as file:
        rows.sink_parquet(file, compression="zstd")


@contextmanager
def _full_disk_told(part: Path) -> Iterator[None]:
    """Polars tells of a device that became full in the midst of a file's last bytes as of a damaged file, and so of one
    that may not grow: it is told as what it is, while the part still takes the room."""
    from polars.exceptions import PolarsError

    try:
        yield
    except PolarsError as error:
        room = os.statvfs(part.parent)
        if room.f_bavail * room.f_frsize < LITTLE_ROOM_BYTES:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(part)) from error
        if f"(os error {errno.EFBIG})" in str(error):
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(part)) from error
        raise
