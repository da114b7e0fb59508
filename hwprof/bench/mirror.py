"""A copy of a bench's folder at any URL that fsspec knows (``s3://bucket/benches``, ``file:///mnt/benches``): each case
is there as soon as it is done, so that a bench can go on from another disk than the one that it was begun on."""

from __future__ import annotations

import re
import shlex
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import Any, Final

from hwprof.bench.matrix import Case
from hwprof.bench.samples import largest_bytes_of
from hwprof.bench.store import CASES, MACHINES, PLAIN, PLAN_FILE, RESULT_FILE, Plan, Store
from hwprof.errors import HwprofError, UsageError, cannot_write, first_line
from hwprof.run.atomic import allowed_mode

URL: Final = re.compile(r"[a-z][a-z0-9+.-]*://.", re.IGNORECASE)
SCHEME: Final = re.compile(r"[a-z][a-z0-9+.-]*:/*", re.IGNORECASE)
PASSWORD: Final = re.compile(r"(?:^|::|:/+)[^/@:]*:[^/@]*@")
"""Behind a user's name; also where a link of a chain has it, or a URL is written wrong."""

CHAIN: Final = "::"
EXAMPLE: Final = "file:///mnt/benches"
MEMORY: Final = "memory://"
MOST_FILES: Final = 100_000
CHUNK_BYTES: Final = 1 << 20
OWN_DIGITS: Final = re.compile(r"(?<=.)-[0-9a-f]{6}\Z")
"""By which a copy's name is longer than the bench's."""


class Mirror:
    """Of one bench, at ``url``, which names its folder."""

    def __init__(self, url: str) -> None:
        """Raises ``UsageError`` for what no file system can be had for."""
        self._files, root = _file_system(url)
        self._root = PurePosixPath(root)
        self._url = url.rstrip("/")
        self.told = str(self._files.unstrip_protocol(root))  # without what a URL may have of a user's

    def put_case(self, store: Store, case: Case) -> None:
        """All of its files, its result last: it is done there, too, when that is there. What an attempt before has left
        goes; what is done there stays, with files that were too large to be brought here. Raises ``HwprofError``."""
        folder = store.folder_of(case)
        if self._has(folder / RESULT_FILE, store.path):
            return
        names = sorted((file.name for file in _own_files(folder)), key=lambda name: (name == RESULT_FILE, name))
        self._remove_others(folder.relative_to(store.path), names)
        self._put(store.path, [folder / name for name in names])

    def put_all(self, store: Store, *, done: Sequence[Case]) -> None:
        """The plan, these cases, and what is made of all of them. Raises ``HwprofError``."""
        self._put(store.path, [store.path / PLAN_FILE, *_own_files(store.path / MACHINES)])
        for case in done:
            self.put_case(store, case)
        made = [file for file in _below(store.path) if not file.is_relative_to(store.path / CASES)]
        self._put(store.path, [file for file in made if not file.name.startswith(".")])

    def discard_unbegun(self) -> None:
        """Takes away what there is of a bench of which no case was begun. What cannot be taken away stays."""
        with suppress(Exception):  # whatever a file system's package may raise
            self._files.rm_file(str(self._root / PLAN_FILE))
            self._files.rmdir(str(self._root))

    def fetch(self, root: Path, allow: Callable[[Plan], None], tell: Callable[[str], None]) -> Path:
        """The bench as it is there, in a new folder below ``root``, whose copy is this one. ``allow`` raises where
        nobody may go on with such a plan; ``tell``: of what was too large. Raises ``HwprofError``, and ``UsageError``
        where it is here already."""
        target = root / self._root.name
        with self._telling(f"no bench can be read from {self.told}"):
            found = self._files.find(str(self._root), maxdepth=3, detail=True)
            plain = {name: info for name, info in found.items() if info["type"] == "file" and not info.get("islink")}
            named = ((_wanted(PurePosixPath(one), self._root), info) for one, info in plain.items())
            wanted = {name: info.get("size") or 0 for name, info in named if name is not None}
        plan = PurePosixPath(PLAN_FILE)
        if plan not in wanted or len(wanted) > MOST_FILES:
            raise UsageError(f"{self.told} is no folder of a bench", self._others())
        self._require_not_here(target)
        try:
            root.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=f".{target.name}-", dir=root, ignore_cleanup_errors=True) as made:
                place = Path(made)
                self._bring({plan: wanted.pop(plan)}, place, tell)
                self._adopt(place, allow)  # before gigabytes come
                self._bring(wanted, place, tell)
                (place / CASES).mkdir(exist_ok=True)
                place.rename(target)
        except OSError as error:
            raise cannot_write(target, error) from error
        target.chmod(allowed_mode(0o777))
        return target

    def _require_not_here(self, target: Path) -> None:
        """Neither as ``target`` nor under the bench's own name."""
        own = target.with_name(OWN_DIGITS.sub("", target.name))
        for place in (target, own):
            if place.exists() and (place == target or self._is_of(place)):
                raise UsageError(f"{place} is here already", f"--resume {shlex.quote(str(place))}")

    def _is_of(self, place: Path) -> bool:
        with suppress(HwprofError):
            url = Store.open(place).plan.store
            return url is not None and Mirror(url).told == self.told
        return False

    def _others(self) -> str:
        """Which benches there are, at the URL or beside it, those of a like name first."""
        found: list[str] = []
        for folder, url in ((self._root, self._url), (self._root.parent, self._url.rpartition("/")[0])):
            with suppress(Exception):  # there is no such folder, or nobody may look
                names = sorted(PurePosixPath(one).name for one in self._files.ls(str(folder), detail=False))
                benches = [name for name in names if name.startswith("bench-") and PLAIN.fullmatch(name)]
                found += [f"{url}/{name}" for name in benches]
        if not found:
            return "--resume URL/bench-DATE-TIME-DIGITS, which the bench's own bench.json names as its store"
        found.sort(key=lambda one: not one.startswith(self._url))
        return f"--resume {shlex.quote(found[0])}{f' ({len(found) - 1} others there)' if len(found) > 1 else ''}"

    def _adopt(self, place: Path, allow: Callable[[Plan], None]) -> None:
        """Whatever its plan says: from now on it is copied to where it came from."""
        try:
            store = Store.open(place)
        except HwprofError as error:
            raise HwprofError(error.message.replace(str(place), self.told), error.remedy) from error
        allow(store.plan)
        store.plan.store = self._url
        store.keep_plan()

    def _bring(self, wanted: Mapping[PurePosixPath, int], place: Path, tell: Callable[[str], None]) -> None:
        """``wanted``: with the size that they are said to have. Results come last. What a bench does not go on without
        may not be too large; of a case that is done neither its log nor its samples are needed."""
        for name in sorted(wanted, key=lambda name: name.name == RESULT_FILE):
            at_most = largest_bytes_of(name.name)
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            if wanted[name] <= at_most and self._brought(name, place / name, at_most):
                continue
            told = f"{self.told}/{name} has more than {at_most >> 20} MiB"
            if name.name == RESULT_FILE or name.parts[0] != CASES:
                raise HwprofError(told, "take it away there")
            (place / name).unlink(missing_ok=True)
            tell(f"{told}: left out")

    def _brought(self, name: PurePosixPath, into: Path, at_most: int) -> bool:
        """Whether it has no more. Raises ``OSError`` where it cannot be written here."""
        size_bytes = 0
        with into.open("wb") as file:
            for chunk in self._chunks(name):
                size_bytes += len(chunk)
                if size_bytes > at_most:
                    return False
                file.write(chunk)
        return True

    def _chunks(self, name: PurePosixPath) -> Iterator[bytes]:
        with (
            self._telling(f"{self.told}/{name} cannot be read"),
            self._files.open(str(self._root / name), "rb") as file,
        ):
            while chunk := file.read(CHUNK_BYTES):
                yield chunk

    def _has(self, file: Path, folder: Path) -> bool:
        """Whether it is there as it is here."""
        there = str(self._root / file.relative_to(folder).as_posix())
        with self._telling(f"cannot write to {self.told}"):
            if not file.is_file() or not self._files.isfile(there) or self._files.size(there) != file.stat().st_size:
                return False
            return bool(self._files.cat_file(there) == file.read_bytes())

    def _remove_others(self, folder: Path, names: Collection[str]) -> None:
        there = str(self._root / folder.as_posix())
        with self._telling(f"cannot write to {self.told}"):
            if self._files.isdir(there):
                for file in self._files.find(there, maxdepth=1):
                    if PurePosixPath(file).name not in names:
                        self._files.rm_file(file)

    def _put(self, folder: Path, files: Sequence[Path]) -> None:
        with self._telling(f"cannot write to {self.told}"):
            for file in files:
                there = str(self._root / file.relative_to(folder).as_posix())
                self._files.makedirs(str(PurePosixPath(there).parent), exist_ok=True)
                self._files.pipe_file(there, file.read_bytes())

    @contextmanager
    def _telling(self, what: str) -> Iterator[None]:
        try:
            yield
        except HwprofError:
            raise
        except Exception as error:  # whatever a file system's package may raise
            raise HwprofError(f"{what}: {first_line(error)}") from error


def check(url: str) -> None:
    """Raises ``UsageError`` for what is no URL, or no file system can be had for."""
    _refuse_passwords(url)
    if CHAIN in url:
        raise UsageError(f"{url}: a copy is kept at one place alone", f"what stands behind {CHAIN}")
    if SCHEME.fullmatch(url) or not url:
        raise UsageError(f"{url or 'an empty text'} names no place", EXAMPLE)
    if not URL.match(url):
        raise UsageError(f"{url} is no URL", EXAMPLE if ":" in url else f"file://{Path(url).absolute()}")
    _file_system(url)


def _refuse_passwords(url: str) -> None:
    """None is repeated. Raises ``UsageError``."""
    if PASSWORD.search(url):
        raise UsageError("a password in a URL would stand in the bench's files", "fsspec's configuration, or a key")


def _file_system(url: str) -> tuple[Any, str]:
    from fsspec.core import url_to_fs

    _refuse_passwords(url)
    if url.startswith(MEMORY):
        raise UsageError(f"{url} is gone when this process ends", EXAMPLE)
    try:
        files, root = url_to_fs(url)
        return files, str(root)
    except ImportError as error:  # Install s3fs to access S3
        raise UsageError(f"{url}: {first_line(error)}", "pip install it") from error
    except (AttributeError, TypeError) as error:  # of dir:// and others that are parts of another one
        raise UsageError(f"{url} alone is no place: fsspec has to be told more", EXAMPLE) from error
    except Exception as error:
        raise UsageError(f"{url}: {first_line(error)}", "a URL that fsspec knows") from error


def _own_files(folder: Path) -> list[Path]:
    """Whole ones, no links."""
    if not folder.is_dir():
        return []
    files = (one for one in folder.iterdir() if one.is_file() and not one.is_symlink())
    return sorted(one for one in files if PLAIN.fullmatch(one.name))


def _below(folder: Path) -> list[Path]:
    return sorted(one for one in folder.rglob("*") if one.is_file() and not one.is_symlink())


def _wanted(one: PurePosixPath, root: PurePosixPath) -> PurePosixPath | None:
    """A file that a bench goes on from, by its name in the bench."""
    try:
        parts = one.relative_to(root).parts
    except ValueError:
        return None
    if not parts or not all(PLAIN.fullmatch(part) for part in parts):
        return None
    in_its_place = parts == (PLAN_FILE,) or (parts[0], len(parts)) in ((MACHINES, 2), (CASES, 3))
    return PurePosixPath(*parts) if in_its_place else None
