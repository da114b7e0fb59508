"""C sources that are compiled with the C compiler when they are first needed, and kept in the user's cache
folder. They need no headers of Python, so a compiler is all that a machine must have."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shlex
import shutil
import sysconfig
import tempfile
from pathlib import Path
from typing import Final

COMPILERS: Final = ("cc", "gcc", "clang")
FLAGS: Final = ("-O2", "-shared", "-fPIC")
COMPILE_TIMEOUT_S: Final = 60


class NoLibraryError(Exception):
    """Why there is no library, in a few words."""


def compiled(name: str, source: bytes) -> Path:
    """The library, from the cache or fresh. Raises ``NoLibraryError``."""
    path = cached(name, source)
    if not path.exists():
        _compile(source, path)
    return path


def cached(name: str, source: bytes) -> Path:
    """Where the library is or belongs: named after the source, the way that it is compiled and the platform. It is code
    that will be run, so a folder that somebody else may write to does not do. Raises ``NoLibraryError``."""
    try:
        folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hwprof"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        state = folder.stat()
    except (OSError, RuntimeError) as error:
        raise NoLibraryError(f"no cache folder: {error}") from error
    if state.st_uid != os.geteuid() or state.st_mode & 0o022:
        raise NoLibraryError(f"others may write to the cache folder {folder}")
    built_from = source + " ".join((*FLAGS, str(sysconfig.get_config_var("SOABI")))).encode()
    return folder / f"{name}-{hashlib.sha256(built_from).hexdigest()[:16]}.so"


def compiler() -> list[str]:
    """The command: ``CC``, or what the system has. Raises ``NoLibraryError``."""
    try:
        chosen = shlex.split(os.environ.get("CC", ""))
    except ValueError as error:
        raise NoLibraryError(f"CC is no command: {error}") from error
    if chosen:
        return chosen
    for name in COMPILERS:
        if shutil.which(name):
            return [name]
    raise NoLibraryError("no C compiler")


def _compile(source: bytes, target: Path) -> None:
    """Builds beside the target and renames: of several processes that build at once, each has a whole file."""
    import subprocess  # rarely needed

    command = compiler()
    try:
        handle, name = tempfile.mkstemp(suffix=".so", dir=target.parent)
    except OSError as error:
        raise NoLibraryError(f"no cache folder: {error}") from error
    os.close(handle)
    try:
        command = [*command, *FLAGS, "-o", name, "-x", "c", "-"]
        subprocess.run(command, check=True, capture_output=True, timeout=COMPILE_TIMEOUT_S, input=source)
        Path(name).replace(target)
    except (OSError, subprocess.SubprocessError) as error:
        message = getattr(error, "stderr", None) or b""
        first = message.decode(errors="replace").strip().partition("\n")[0]
        raise NoLibraryError(f"the C compiler failed: {first or error}") from error
    finally:
        with contextlib.suppress(FileNotFoundError):
            Path(name).unlink()
