"""Programs in the place of the tools that collectors start, which fail in one way each. All of them note their process
and that of a child, which has their output open, in a file; and what they say would move a terminal's cursor."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]

PIDS: Final = "pids"

SAID: Final = "\x1b[31m\x07evil\u202e"
"""What they complain of."""

HEAD: Final = """\
#!{python} -IS
import os, signal, subprocess, sys, time
SAID, ARGUMENTS = {said!r}, sys.argv[1:]
def note(pid):
    with open({pids!r}, "a") as pids:
        print(pid, file=pids)
def child():
    note(subprocess.Popen([sys.executable, "-IS", "-c", "import time; time.sleep(300)"]).pid)
def complain(status):
    print(SAID, file=sys.stderr, flush=True)
    sys.exit(status)
def hang():
    child()
    time.sleep(300)
def stop():
    child()
    os.kill(os.getpid(), signal.SIGSTOP)
    time.sleep(300)
def die():
    child()
    os.kill(os.getpid(), signal.SIGKILL)
def talk():
    child()
    while True:
        print(SAID * 1000, flush=True)
note(os.getpid())
"""

PY_SPY: Final = """
def record():
    print("py-spy> Sampling process 100 times a second", flush=True)
    print(SAID, flush=True)
def until_told():
    told = []
    signal.signal(signal.SIGINT, lambda *_: told.append(1))
    record()
    while not told:
        time.sleep(0.01)
def write(data):
    with open(ARGUMENTS[ARGUMENTS.index("--output") + 1], "wb") as file:
        file.write(data)
if "--version" in ARGUMENTS:
    print("py-spy 9.9.9" + SAID)
    sys.exit()
"""

VALGRIND: Final = f"""
if "--version" in ARGUMENTS:
    print("valgrind-9.9.9" + SAID)
    sys.exit()
OPTIONS = dict(one.partition("=")[::2] for one in ARGUMENTS if one.startswith("--"))
def work():
    tool = subprocess.Popen([{shutil.which("valgrind")!r}, *ARGUMENTS], close_fds=False)
    note(tool.pid)
    tool.wait()
def write(data):
    for name in ("--callgrind-out-file", "--log-file"):
        with open(OPTIONS[name], "wb") as file:
            file.write(data)
"""

COMPILER: Final = """
sys.stdin.buffer.read()
def write(data):
    with open(ARGUMENTS[ARGUMENTS.index("-o") + 1], "wb") as file:
        file.write(data)
"""

METER: Final = """
def watts(times):
    for _ in range(times):
        print("36.5", flush=True)
        time.sleep(0.02)
"""

FRIDA: Final = """
import os, signal, time
class core:
    class RPCException(Exception): ...
def attach(*_):
    {fault}
"""

GARBAGE: Final = 'write(b"\\xff[\\x1b[31m" * 1000)'


def write(folder: Path, name: str, script: str) -> Path:
    """The program of that name in ``folder``, which is to be first on PATH. ``script`` follows the ``HEAD``."""
    folder.mkdir(exist_ok=True)
    program = folder / name
    head = HEAD.format(python=sys.executable, said=SAID, pids=str(folder / PIDS))
    program.write_text(head + textwrap.dedent(script))
    program.chmod(0o755)
    return program


def environment(folder: Path) -> Mapping[str, str]:
    """In which its programs come before others, also before those beside the interpreter, and its modules too."""
    folder.mkdir(exist_ok=True)
    (folder / "sitecustomize.py").write_text(
        "import sysconfig\n"
        "get_path = sysconfig.get_path\n"
        "sysconfig.get_path = lambda name, *more, **named: (\n"
        f"    {str(folder)!r} if name == 'scripts' else get_path(name, *more, **named)\n"
        ")\n"
    )
    return {
        "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}",
        "XDG_CACHE_HOME": str(folder / "cache"),
    }


def pids(folder: Path) -> list[int]:
    """Of all that ran, and their children."""
    file = folder / PIDS
    return [int(line) for line in file.read_text().split()] if file.exists() else []
