"""A process whose folder is gone says that, and not which of its files it missed first."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hwprof.errors import STAYS
from hwprof.session.last_words import last_words
from hwprof.session.messages import Failed


def said(missing: Path, place: str) -> Failed:
    try:
        missing.read_text()
    except FileNotFoundError as error:
        return last_words(error, place)
    raise AssertionError(missing)


def test_a_folder_that_is_gone_is_told(tmp_path: Path) -> None:
    found = said(tmp_path / "gone" / "x", str(tmp_path / "gone"))
    assert (found.message, found.remedy, found.exit_code) == (f"{tmp_path / 'gone'} is gone", STAYS, 1)


@pytest.mark.parametrize("place", ["there", os.devnull])
def test_another_file_that_is_missing_is_told_as_that(place: str, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    found = said(tmp_path / "weights", str(tmp_path / place))
    assert "weights" in found.message and found.remedy != STAYS
