"""Folders on the command line."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import click

from hwprof.errors import UsageError


class Folder(click.ParamType[Path]):
    """A folder that is there or can be made; what is there and is none is a usage error, and so is no name at all, or a
    link that leads nowhere: nothing can be made in its place."""

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
            link = next((one for one in (path, *path.parents) if one.is_symlink() and not one.exists()), None)
            if link is not None:
                raise _leads_nowhere(link, param.opts[0] if param is not None else "folder")
        except ValueError:  # a null character
            self.fail(f"{text!r} is no name of a folder.", param, ctx)
        except OSError:  # what it is, nobody may know; whoever uses it says what is wrong
            pass
        return path


class FolderOrUrl(click.ParamType[Path | str]):
    """A folder, or, as it is, a URL."""

    name = "directory"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path | str:
        """The path, or the URL."""
        text = str(value)
        return text if text.find("://") > 0 else Folder().convert(value, param, ctx)


def _leads_nowhere(link: Path, option: str) -> UsageError:
    """That the folder, or one above it, is such a link; one to another link may be a circle."""
    target = link.parent / link.readlink()
    make = "" if target.is_symlink() else f"mkdir -p {shlex.quote(str(target))}, or "
    return UsageError(f"{option}: {link} is a link to {target}, which is not there", f"{make}another {option}")
