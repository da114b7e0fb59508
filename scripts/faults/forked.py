"""A warmed process, of which each case is a copy: ``python -m scripts.faults.forked IMPORTS``: modules,
and ``module:function`` for what is called beforehand.

Reads orders as lines of JSON on standard input, and answers with one line each. A copy has a session, a folder and
streams of its own, and a bound on its address space; what it does that no reader of files does is noted.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import signal
import sys
import time
from pathlib import Path
from typing import Any, Final

from hwprof import bytecode
from scripts.faults.left_alive import left_alive
from scripts.faults.processor_waits import ProcessorWaits

SPACE_BYTES: Final = 24 << 30
LOOK_EVERY_S: Final = 0.002

DANGEROUS: Final = (
    "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.forkpty", "subprocess.Popen", "pty.spawn",
    "socket.connect", "socket.bind", "os.remove", "os.rename", "os.rmdir", "os.link", "os.symlink", "os.chmod",
    "os.truncate", "os.putenv", "shutil.", "webbrowser.open", "code.__new__", "builtins.input",
)  # fmt: skip
"""Audit events (PEP 578) that reading a file has no need of."""


def main() -> None:
    """Until there is no order left."""
    for name in sys.argv[1].split(","):
        module, _, function = name.partition(":")
        imported = importlib.import_module(module)
        if function:
            getattr(imported, function)()
    for line in sys.stdin:
        answer = _carried_out(json.loads(line))
        print(json.dumps(answer), flush=True)


def _carried_out(order: dict[str, Any]) -> dict[str, Any]:
    begin = time.monotonic()
    pid = os.fork()
    if not pid:
        try:
            _copy(order)
        finally:
            os._exit(70)  # not reached: ``_copy`` leaves by itself
    timed_out, status, used, waits = False, 0, None, ProcessorWaits(pid)
    while used is None:
        done, status, found = os.wait4(pid, os.WNOHANG)
        if done:
            used = found
        elif not timed_out and waits.too_long(order["limit_s"]):
            timed_out = True
            os.killpg(pid, signal.SIGKILL)
        else:
            time.sleep(LOOK_EVERY_S)
    code = 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
    return {
        "code": code, "seconds": time.monotonic() - begin, "peak_bytes": used.ru_maxrss << 10,
        "timed_out": timed_out, "left": left_alive(lambda folder: _is_of(folder, pid)),
    }  # fmt: skip


def _copy(order: dict[str, Any]) -> None:
    """The case itself."""
    os.setsid()
    folder = Path(order["folder"])
    os.chdir(folder)
    for number, name in ((0, "/dev/null"), (1, str(folder / ".out")), (2, str(folder / ".err"))):
        _open(number, order["streams"].get(str(number), name))
    sys.stdin, sys.stdout, sys.stderr = (_stream(number, mode) for number, mode in ((0, "r"), (1, "w"), (2, "w")))
    for name, limit in ({"RLIMIT_AS": SPACE_BYTES, "RLIMIT_CORE": 0} | order["limits"]).items():
        resource.setrlimit(getattr(resource, name), (limit, limit))
    own = {"HOME": str(folder), "XDG_CACHE_HOME": str(folder / ".cache"), "COLUMNS": "100"}
    for name, value in (own | order["environment"]).items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    bytecode.keep_whole()  # as ``hwprof.__main__`` does it, and:
    from hwprof.cli import streams

    streams.prepare()
    if order["quiet"]:
        _watch(folder / ".events")
    code = _called(order)
    streams.settle()
    sys.stderr.flush()
    os._exit(code)


def _open(number: int, name: str) -> None:
    if name == "closed":
        os.close(number)
        return
    if name == "nobody":
        end, opened = os.pipe()
        os.close(end)
    else:
        opened = os.open("/dev/full" if name == "full" else name, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
    os.dup2(opened, number)
    os.close(opened)


def _stream(number: int, mode: str) -> Any:
    """As Python opens it at its start: None where it is closed."""
    try:
        return open(number, mode, encoding="utf-8", closefd=False)
    except OSError:
        return None


def _called(order: dict[str, Any]) -> int:
    from hwprof.cli import app

    if not order["call"]:
        return app.run(order["arguments"])
    from scripts.faults import actions

    try:
        getattr(actions, order["call"])(*order["arguments"])
    except BaseException as error:
        message, code = app._told(error)
        print(message, file=sys.stderr)
        return code
    return 0


def _watch(file: Path) -> None:
    notes = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def heard(event: str, arguments: tuple[Any, ...]) -> None:
        writes = event == "open" and isinstance(arguments[1], str) and set(arguments[1]) & set("wax+")
        if writes or event.startswith(DANGEROUS):
            os.write(notes, f"{event}{arguments!r:.200}\n".encode("utf-8", "replace"))

    sys.addaudithook(heard)


def _is_of(folder: Path, session: int) -> bool:
    fields = (folder / "stat").read_text().rpartition(")")[2].split()
    return int(fields[3]) == session and fields[0] != "Z"


if __name__ == "__main__":
    main()
