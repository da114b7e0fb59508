"""What reaches the terminal."""

from __future__ import annotations

import io

import pytest
from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from hwprof.report.text.console import make_console

HOSTILE = "a\x1b]0;title\x07\x1b[2J\x9b31mb\nc"


@pytest.mark.parametrize("shown", [HOSTILE, Text(HOSTILE), Padding(Text(HOSTILE), (0, 0, 0, 2))])
def test_foreign_text_moves_no_cursor(shown: RenderableType) -> None:
    out = io.StringIO()
    make_console(80, out).print(shown)
    lines = out.getvalue().splitlines()
    assert [line.strip()[:1] for line in lines] == ["a", "c"]
    assert all(line.isprintable() for line in lines)
