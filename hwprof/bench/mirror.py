"""A copy of a bench's folder at any URL that fsspec knows (``s3://bucket/benches``, ``file:///mnt/benches``): each case
is there as soon as it is done, so that a bench can go on from another disk than the one that it was begun on."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any, Final

from hwprof.bench.matrix import Case
from hwprof.bench.store import CASES, LARGEST_BYTES, MACHINES, PLAIN, PLAN_FILE, RESULT_FILE, Store
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


class Mirror:
    """Of one bench, at ``url``, which names its folder."""

    def __init__(self, url: str) -> None:
        """Raises ``UsageError`` for what no file system can be had for."""
        self._files, root = _file_system(url)
        self._root = PurePosixPath(root)
        self.told = str(self._files.unstrip_protocol(root))  # without what a URL may have of a user's

    def put_case(self, store: Store, case: Case) -> None:
        """All of its files, its result last: it is done there, too, when that is there. What an attempt before has left
        goes. Raises ``HwprofError``."""
        folder = store.folder_of(case)
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

    def fetch(self, root: Path) -> Path:
        """The bench as it is there, in a new folder below ``root``. Raises ``HwprofError``, and ``UsageError`` where
        one of that name is here."""
        target = root / self._root.name
        if target.exists():
            raise UsageError(f"{target} is here already", f"--resume {target}")
        with self._telling(f"no bench can be read from {self.told}"):
            found = self._files.find(str(self._root), maxdepth=3, detail=True)
            plain = [name for name, info in found.items() if info["type"] == "file" and not info.get("islink")]
            wanted = [name for one in plain if (name := _wanted(PurePosixPath(one), self._root)) is not None]
        if PurePosixPath(PLAN_FILE) not in wanted or len(wanted) > MOST_FILES:
            raise UsageError(f"{self.told} is no folder of a bench", "--resume URL/bench-DATE-TIME")
        try:
            root.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=f".{target.name}-", dir=root, ignore_cleanup_errors=True) as made:
                place = Path(made)
                self._bring(wanted, place)
                self._require_sound(place)
                (place / CASES).mkdir(exist_ok=True)
                place.rename(target)
        except OSError as error:
            raise cannot_write(target, error) from error
        target.chmod(allowed_mode(0o777))
        return target

    def _require_sound(self, place: Path) -> None:
        try:
            Store.open(place)
        except HwprofError as error:
            raise HwprofError(error.message.replace(str(place), self.told), error.remedy) from error

    def _bring(self, wanted: Sequence[PurePosixPath], place: Path) -> None:
        for name in sorted(wanted, key=lambda name: name.name == RESULT_FILE):
            with self._telling(f"{self.told}/{name} cannot be read"):
                data = self._read(name)
            if len(data) > LARGEST_BYTES:
                raise HwprofError(f"{self.told}/{name} has more than {LARGEST_BYTES >> 20} MiB", "take it away there")
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).write_bytes(data)

    def _remove_others(self, folder: Path, names: Collection[str]) -> None:
        there = str(self._root / folder.as_posix())
        with self._telling(f"cannot write to {self.told}"):
            if self._files.isdir(there):
                for file in self._files.find(there, maxdepth=1):
                    if PurePosixPath(file).name not in names:
                        self._files.rm_file(file)

    def _read(self, name: PurePosixPath) -> bytes:
        with self._files.open(str(self._root / name), "rb") as file:
            return bytes(file.read(LARGEST_BYTES + 1))

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
