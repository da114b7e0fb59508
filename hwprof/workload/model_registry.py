"""Models by name: our architectures, then the models that ultralytics brings.

Cheap: neither torch nor ultralytics is imported.
"""

from __future__ import annotations

import difflib
import re
from functools import cache
from importlib import resources
from itertools import chain
from pathlib import Path
from typing import Any, Final

import msgspec

from hwprof import packages
from hwprof.errors import UsageError
from hwprof.workload.heads import TaskEntry, known_tasks, refused_modules, task_of, why_refused
from hwprof.workload.libraries import ultralytics_folder

CFG: Final = ".cfg"
"""Ends the names of Darknet's model files, which are models, too."""

SIZE: Final = "_"
"""Where a size letter stands in the names of our layout files."""

MAIN: Final = "yolov7"
"""The model that is listed first."""

ANCHOR_FREE: Final = "u"
"""Ends the names of ultralytics' models that have the name of an original with anchors, as in its own checkpoints."""


class ModelEntry(msgspec.Struct, frozen=True):
    """A model that can be built by name."""

    name: str
    origin: str  # "hwprof", "ultralytics", or "darknet": a .cfg of the user's
    file: Path
    scale: str | None = None  # ultralytics' size letter
    head: str = "Detect"  # its last module, or one for which it is refused

    @property
    def task(self) -> TaskEntry:
        """Raises ``UsageError`` for a model that hwprof does not run; ``find_model`` gives none."""
        task = task_of(self.head)
        if task is None:
            raise UsageError(
                f"{self.name} has the module {self.head}, which hwprof does not run: {why_refused(self.head)}",
                "measure its forward pass alone: --model package.module:factory --input-shape 1,3,640,640",
            )
        return task


def known_models() -> list[str]:
    """The names that ``--model`` takes besides ``package.module:factory``, ours first."""
    return [entry.name for entry in known_entries()]


def known_entries() -> list[ModelEntry]:
    """The models of these names."""
    heads = {head for task in known_tasks() for head in task.heads}
    return [entry for entry in _entries().values() if entry.head in heads]


def find_model(name: str) -> ModelEntry:
    """The model of that name, or of a .cfg of Darknet, which is not read yet; raises ``UsageError`` with near matches,
    or for a model that hwprof does not run."""
    if name.endswith(CFG):
        return ModelEntry(name=name, origin="darknet", file=Path(name))
    entry = _find_by_file(name) or _entries().get(name)
    if entry is None:
        near = difflib.get_close_matches(name, known_models(), n=3)
        hint = f"did you mean {' or '.join(near)}?" if near else "no name is near"
        remedy = "hwprof models lists them; package.module:factory is yours"
        if ultralytics_folder() is None:
            remedy = f"{packages.YOLO}, which brings more models; {remedy}"
        raise UsageError(f"there is no model {name}: {hint}", remedy)
    _ = entry.task  # raises for a model that is not run
    return entry


def _find_by_file(name: str) -> ModelEntry | None:
    """The model, from the files alone whose names are like its own: reading all of them takes a fifth of a second."""
    own = [entry for file in _own_files() if _may_be(file.stem, name) for entry in _own_sizes(file)]
    ultralytics = (file for file in _ultralytics_files() if _may_hold(file.stem, name.removesuffix(ANCHOR_FREE)))
    alike = chain(own, (entry for file in ultralytics for entry in _scales(file)))
    return next((entry for entry in alike if entry.name == name), None)


def _may_be(stem: str, name: str) -> bool:
    """Whether our layout file of that stem may have a size of that name: ``yolov5_6`` has ``yolov5n6``."""
    return re.fullmatch(re.escape(stem).replace(SIZE, "."), name) is not None


def _may_hold(stem: str, name: str) -> bool:
    """Whether the layout file of that stem may have a size of that name: ``yolov8-p2`` has ``yolov8n-p2``."""
    before, after = _split(stem)
    return stem == name or (name.startswith(before) and name.endswith(after))


@cache
def _entries() -> dict[str, ModelEntry]:
    entries = {entry.name: entry for entry in _own_architectures()}
    for entry in _ultralytics_models():
        entries.setdefault(entry.name, entry)
    return entries


def _own_architectures() -> list[ModelEntry]:
    return [entry for file in _own_files() for entry in _own_sizes(file)]


def _own_files() -> list[Path]:
    with resources.as_file(resources.files("hwprof.workload") / "architectures") as folder:
        return sorted(folder.glob("*.yaml"), key=lambda file: (file.stem != MAIN, file.stem))


def _own_sizes(file: Path) -> list[ModelEntry]:
    """One layout file's models: one a size letter, whose place in the name is ``SIZE``."""
    if SIZE not in file.stem:
        return [ModelEntry(name=file.stem, origin="hwprof", file=file)]
    scales = read_yaml(file)["scales"]
    return [
        ModelEntry(name=file.stem.replace(SIZE, scale), origin="hwprof", file=file, scale=scale) for scale in scales
    ]


def _ultralytics_models() -> list[ModelEntry]:
    return [entry for file in _ultralytics_files() for entry in _scales(file)]


def _ultralytics_files() -> list[Path]:
    folder = ultralytics_folder()
    if folder is None:
        return []
    return sorted((folder / "cfg" / "models").glob("*/*.yaml"), key=lambda file: _natural(file.stem))


def _scales(file: Path) -> list[ModelEntry]:
    """One layout file's models: one a size letter, where the file has several sizes."""
    layout = read_yaml(file)
    modules = [str(line[-2]) for line in (*layout["backbone"], *layout["head"])]
    head = next((module for module in modules if module in refused_modules()), modules[-1])
    scales = [str(scale) for scale in layout.get("scales") or {}]
    if len(scales) < 2:  # the size is in the file's own name: yolov10n, yolov9c
        scale = scales[0] if scales else None
        return [ModelEntry(name=_told_apart(file.stem), origin="ultralytics", file=file, scale=scale, head=head)]
    before, after = _split(file.stem)
    return [
        ModelEntry(name=_told_apart(f"{before}{scale}{after}"), origin="ultralytics", file=file, scale=scale, head=head)
        for scale in scales
    ]


def _told_apart(name: str) -> str:
    """From an original of that name."""
    return name + ANCHOR_FREE if any(_may_be(file.stem, name) for file in _own_files()) else name


def _split(stem: str) -> tuple[str, str]:
    """What stands before and after a size letter."""
    found = re.fullmatch(r"(yolo(?:e-)?v?\d+|.*)(.*)", stem)
    assert found is not None
    return found[1], found[2]


def read_yaml(file: Path) -> dict[str, Any]:
    """A layout file as a dictionary; through libyaml where it is there, as it is ten times as fast."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    layout: dict[str, Any] = yaml.load(file.read_text(encoding="utf-8"), loader)
    return layout


def _natural(text: str) -> list[tuple[int, str]]:
    """Sorts yolo11 after yolov9."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", text)]
