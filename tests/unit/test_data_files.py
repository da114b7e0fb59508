"""Packaged data: what a reader gets, and what a damaged file says."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec
import pytest

from hwprof.data_files import read_toml
from hwprof.errors import HwprofError


class _Entry(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    size: int = 0


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a module in a package of its own, whose folder is ``tmp_path / "packaged"``."""
    folder = tmp_path / "packaged"
    (folder / "more").mkdir(parents=True)
    (folder / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "packaged", raising=False)
    return "packaged.reader"


def test_a_file_beside_the_module_or_in_a_folder_there(module: str, tmp_path: Path) -> None:
    (tmp_path / "packaged" / "a.toml").write_text('name = "one"')
    (tmp_path / "packaged" / "more" / "b.toml").write_text('name = "two"\nsize = 2')
    assert read_toml(module, "a.toml", _Entry) == _Entry("one")
    assert read_toml(module, "more/b.toml", _Entry) == _Entry("two", 2)


@pytest.mark.parametrize("text", ["name = ", "size = 1", 'name = "x"\nsize = "large"', 'name = "x"\nsice = 1'])
def test_a_damaged_file_is_named(text: str, module: str, tmp_path: Path) -> None:
    (tmp_path / "packaged" / "a.toml").write_text(text)
    with pytest.raises(HwprofError, match=r"^packaged/a\.toml: "):
        read_toml(module, "a.toml", _Entry)


def test_a_missing_file_is_missing(module: str) -> None:
    with pytest.raises(FileNotFoundError):
        read_toml(module, "none.toml", _Entry)
