"""What the C compiler keeps while it works is nobody's temporary file, however it ends."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from hwprof import c_compiler, programs

SOURCE = b"int answer(void) { return 42; }"


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """The cache folder and the folder of temporary files."""
    cache, temporary = tmp_path / "cache", tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    monkeypatch.setenv("TMPDIR", str(temporary))
    return cache / "hwprof", temporary


def _compiler(folder: Path, then: str) -> str:
    """One that leaves a file where it is told to keep such, and then does that."""
    script = folder / "cc"
    script.write_text(f'#!/bin/sh\ncat > /dev/null\necho x > "$TMPDIR/cc1234.s"\n{then}\n')
    script.chmod(0o755)
    return str(script)


@pytest.mark.parametrize("then", ["exit 1", "exec sleep 60"])
def test_one_that_fails_or_hangs_leaves_nothing(
    own: tuple[Path, Path], then: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CC", _compiler(tmp_path, then))
    monkeypatch.setattr(c_compiler, "COMPILE_TIMEOUT_S", 0.3)
    with pytest.raises(c_compiler.NoLibraryError, match="the C compiler failed"):
        c_compiler.compiled("answer", SOURCE)
    assert [list(folder.iterdir()) for folder in own] == [[], []]


def test_one_that_is_interrupted_leaves_nothing(
    own: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CC", _compiler(tmp_path, "exec sleep 60"))
    looks = 0

    def interrupted(pid: int) -> bool:
        nonlocal looks
        looks += 1
        if any(own[0].rglob("cc1234.s")):
            raise KeyboardInterrupt
        return False

    monkeypatch.setattr(programs, "_has_ended", interrupted)
    with pytest.raises(KeyboardInterrupt):
        c_compiler.compiled("answer", SOURCE)
    assert looks and [list(folder.iterdir()) for folder in own] == [[], []]


@pytest.mark.skipif(not any(map(shutil.which, c_compiler.COMPILERS)), reason="no C compiler")
def test_what_it_makes_is_kept_alone(own: tuple[Path, Path]) -> None:
    path = c_compiler.compiled("answer", SOURCE)
    assert list(own[0].iterdir()) == [path] and c_compiler.is_whole(path)
    assert list(own[1].iterdir()) == []
