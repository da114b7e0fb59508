"""C sources that are compiled with the C compiler when they are first needed, and kept in the user's cache
folder. They need no headers of Python, so a compiler is all that a machine must have."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Final

from hwprof.errors import of_system
from hwprof.printable import printable
from hwprof.run.manifest import Tool
from hwprof.run.regular_files import read_regular

COMPILERS: Final = ("cc", "gcc", "clang")
FLAGS: Final = ("-O2", "-shared", "-fPIC")
COMPILE_TIMEOUT_S: Final = 20
"""A second is usual."""

LARGEST_BYTES: Final = 16 << 20
"""Of a library: a hundred times what one has."""

LOAD_TIMEOUT_S: Final = 10
DIGEST_BYTES: Final = hashlib.sha256().digest_size

LOAD: Final = """
import ctypes, sys
try:
    ctypes.PyDLL(sys.argv[1])
except OSError as error:
    sys.exit(str(error))
"""
"""Tried in another process: what is no library may end the one that loads it."""


INSTALL: Final = "sudo apt-get install -y gcc"
CHOOSE: Final = f"set CC to a C compiler, or {INSTALL}"

CACHE: Final = "set XDG_CACHE_HOME to a folder that can be written to"

MADE_BY: Final = re.compile(rb"(?:GCC: |[^\0]*(?=clang version ))([^\0]+)\0")
"""What a compiler writes into the section .comment of all that it makes."""


class NoLibraryError(Exception):
    """Why there is no library, in a few words, and what would bring it."""

    def __init__(self, reason: str, remedy: str | None = None) -> None:
        super().__init__(reason)
        self.remedy = remedy


def cache_folder() -> Path:
    """The user's, of hwprof. Raises ``RuntimeError`` where there is no home."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hwprof"


def tool(library: Path) -> Tool:
    """The compiler that made it, as the library itself says."""
    try:
        made_by = MADE_BY.search(library.read_bytes())
    except OSError:
        made_by = None
    version = printable(made_by[1].decode(errors="replace")) if made_by else None
    return Tool(name="C compiler", version=version, path=str(library))


def compiled(name: str, source: bytes) -> Path:
    """The library, from the cache or fresh. Raises ``NoLibraryError``."""
    path = cached(name, source)
    if not is_whole(path):
        _compile(source, path)
    return path


def is_whole(library: Path) -> bool:
    """Whether it is what was compiled: its last bytes are the digest of all others, which the loader does not look at.
    A library that was cut ends the process that runs its code by SIGBUS."""
    try:
        content = read_regular(library, LARGEST_BYTES)
    except OSError:
        return False
    return content[-DIGEST_BYTES:] == hashlib.sha256(content[:-DIGEST_BYTES]).digest()


def cached(name: str, source: bytes) -> Path:
    """Where the library is or belongs: named after the source, the way that it is compiled and the platform. It is code
    that will be run, so a folder that somebody else may write to does not do. Raises ``NoLibraryError``."""
    folder = own_cache_folder()
    built_from = source + " ".join((*FLAGS, str(sysconfig.get_config_var("SOABI")))).encode()
    return folder / f"{name}-{hashlib.sha256(built_from).hexdigest()[:16]}.so"


def own_cache_folder() -> Path:
    """The cache folder, made where there was none, that nobody else may write to. Raises ``NoLibraryError``."""
    try:
        folder = cache_folder()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        state = folder.stat()
    except (OSError, RuntimeError) as error:
        raise _no_folder(error) from error
    if state.st_uid != os.geteuid() or state.st_mode & 0o022:
        raise NoLibraryError(f"others may write to the cache folder {folder}", f"chmod go-w {shlex.quote(str(folder))}")
    return folder


def _no_folder(error: OSError | RuntimeError) -> NoLibraryError:
    said = of_system(error) if isinstance(error, OSError) else None
    return NoLibraryError(f"no cache folder: {said or error}", CACHE)


def compiler() -> list[str]:
    """The command: ``CC``, or what the system has. Raises ``NoLibraryError``."""
    try:
        chosen = shlex.split(os.environ.get("CC", ""))
    except ValueError as error:
        raise NoLibraryError(f"CC is no command: {error}", CHOOSE) from error
    if chosen:
        return chosen
    for name in COMPILERS:
        if shutil.which(name):
            return [name]
    raise NoLibraryError("no C compiler", INSTALL)


def _compile(source: bytes, target: Path) -> None:
    """Builds beside the target and renames: of several processes that build at once, each has a whole file. There, too,
    is what the compiler keeps meanwhile: one that is ended leaves it."""
    from hwprof import programs  # rarely needed

    command = compiler()
    try:
        folder = Path(tempfile.mkdtemp(prefix="making-", dir=target.parent))
    except OSError as error:
        raise _no_folder(error) from error
    made = folder / target.name
    try:
        made.touch()
        command = [*command, *FLAGS, "-o", str(made), "-x", "c", "-"]
        environment = {**os.environ, "TMPDIR": str(folder)}
        ended = programs.run(command, limit_s=COMPILE_TIMEOUT_S, given=source, environment=environment)
        if ended.status:
            raise NoLibraryError(f"the C compiler failed: {ended.reason()}", CHOOSE)
        with made.open("r+b") as library:
            digest = hashlib.sha256(library.read()).digest()
            library.write(digest)
        loaded = programs.run([sys.executable, "-IS", "-c", LOAD, str(made)], limit_s=LOAD_TIMEOUT_S)
        if loaded.status:
            raise NoLibraryError(f"what the C compiler wrote does not load: {loaded.reason()}", CHOOSE)
        made.replace(target)
    except (OSError, programs.ProgramError) as error:
        raise NoLibraryError(f"the C compiler failed: {error}", CHOOSE) from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)
