"""Folders on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click


class Folder(click.ParamType[Path]):
    """A folder that is there or can be made; what is there and is none is a usage error, and so is no name at all."""

    name = "directory"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """The path."""
        text = str(value)
        path = Path(text)
        try:
            if not text:
                self.fail("a folder has a name; the one that you are in is .", param, ctx)
            if path.exists() and not path.is_dir():
                self.fail(f"{text} is no folder.", param, ctx)
        except ValueError:  # a null character
            self.fail(f"{text!r} is no name of a folder.", param, ctx)
        except OSError:  # what it is, nobody may know; whoever uses it says what is wrong
            pass
        return path
