"""Which of the known models a file of weights belongs to: the one whose tensors are its own, name by name.

``python -m hwprof.workload.recognition FILE`` says it to a process that has no torch.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePath
from typing import Any, Final, NamedTuple

import msgspec

from hwprof.errors import LONGEST, HwprofError, UsageError
from hwprof.printable import printable
from hwprof.processes import command, ending_with_parent

NAME_IT: Final = "--model NAME (hwprof models lists them), or package.module:factory of a model of yours"

ACTIVATION: Final = "activation"
LAYERS: Final = ("backbone", "head", ACTIVATION)
"""What in a layout file says how a model computes."""

SECOND_HEAD: Final = 8
"""So many modules more than what is deployed has what is trained with a second head, at most."""

NEIGHBOURS: Final = 2
"""So many models of each kind are built to say which one comes nearest."""

ALIKE: Final = 0.5
"""A model with fewer of its tensors than that is not near a file."""

_NUMBERED: Final = re.compile(r"(?:model\.)?model\.(\d{1,6})\.")
_FIRST: Final = re.compile(r"model\.0\.(?:conv\.)?conv\.weight")


class Answer(msgspec.Struct):
    """The model's name, or why there is none."""

    model: str | None = None
    message: str = ""
    remedy: str | None = None
    exit_code: int = 1


def ask(weights: Path) -> str:
    """What ``recognise`` says, in a process that ends with torch and all that it has read. Raises as it does."""
    asked, tied = command(__name__, str(weights)), ending_with_parent()
    done = subprocess.run(asked, stdin=subprocess.DEVNULL, capture_output=True, check=False, preexec_fn=tied)
    try:
        answer = msgspec.json.decode(done.stdout, type=Answer)
    except msgspec.DecodeError:
        last = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
        why = f": {printable(last[0][:LONGEST])}" if last else f" (status {done.returncode})"
        raise HwprofError(f"what {weights} belongs to could not be told{why}", NAME_IT) from None
    if answer.model is None:
        kind = UsageError if answer.exit_code == UsageError.exit_code else HwprofError
        raise kind(answer.message, answer.remedy)
    return answer.model


def recognise(file: Path) -> str:
    """The name of a model whose tensors have the names and shapes of the file's; of Darknet's weights the .cfg beside
    them. Raises ``UsageError`` where there is none, and what ``read_checkpoint`` raises."""
    from hwprof.workload.checkpoints import read_checkpoint
    from hwprof.workload.darknet_weights import DarknetWeights

    weights = read_checkpoint(file)
    if isinstance(weights, DarknetWeights):
        cfg = file.with_suffix(".cfg")
        if cfg.is_file():
            return str(cfg)
        raise UsageError(f"{file} does not say which model it belongs to", f"--model with its .cfg: there is no {cfg}")
    tried: list[Misfit] = []
    for entry in _candidates(weights):
        misfit = _misfit(weights, entry)
        if misfit is None:
            _require_alike(file, weights.described, entry)
            return str(entry.name)
        tried.append(misfit)
    nearest = _nearest(weights, tried)
    raise UsageError(f"no known model has the tensors that {file} has{nearest}", NAME_IT)


def _require_alike(file: Path, described: Mapping[str, Any], entry: Any) -> None:
    """Raises ``UsageError`` where the file says itself that its model is another one, whose tensors are the same ones:
    one of another activation, say."""
    from hwprof.workload.model_registry import read_yaml

    own = read_yaml(entry.file) if entry.origin == "ultralytics" else {}
    for key in LAYERS:
        if described.get(key) is not None and described[key] != own.get(key) and (own or key == ACTIVATION):
            told = f"{file} has the tensors of {entry.name}, and by what it says of itself another {key}"
            raise UsageError(
                told, f"a factory of yours that builds it; or --model {entry.name}: measured is that model"
            )


def _candidates(weights: Any) -> Iterator[Any]:
    """The models that it may be by what is quickly known: the one that the file names first."""
    from hwprof.workload.model_registry import read_yaml

    last, first = _size(weights)
    said = PurePath(weights.layout).stem
    for entry in sorted(_of_its_task(weights), key=lambda entry: (entry.name != said, entry.name != f"{said}u")):
        if entry.name in (said, f"{said}u") or _may_be(entry, read_yaml(entry.file), last, first):
            yield entry


def _of_its_task(weights: Any) -> list[Any]:
    """The known models that find what its head does."""
    from hwprof.workload.head_tensors import task_in
    from hwprof.workload.model_registry import known_entries

    task = task_in(weights.state)
    return [entry for entry in known_entries() if entry.task.name == task]


def _size(weights: Any) -> tuple[int, int | None]:
    """Of a file's tensors: the number of the last module, -1 where none is numbered; the first one's width."""
    numbers = [int(found[1]) for key in weights.state if (found := _NUMBERED.match(key))]
    first = next(
        (len(value) for key, value in weights.state.items() if _FIRST.fullmatch(key) and value.ndim == 4), None
    )
    return max(numbers, default=-1), first


def _may_be(entry: Any, layout: dict[str, Any], last: int, first: int | None) -> bool:
    """By the number of modules, and of ultralytics' sizes by the width of the first one."""
    if entry.origin == "hwprof":
        return _last(entry, layout) <= last <= _last(entry, layout) + SECOND_HEAD
    width = _width(entry, layout)
    return _last(entry, layout) == last and (first is None or width is None or abs(width - first) < 8)


def _last(entry: Any, layout: dict[str, Any]) -> int:
    """The number of the last module."""
    return (_modules(layout) if entry.origin == "hwprof" else len(layout["backbone"]) + len(layout["head"])) - 1


def _width(entry: Any, layout: dict[str, Any]) -> float | None:
    """Of the first module, of ultralytics' models; None where it is not told."""
    if entry.origin == "hwprof":
        return None
    width: float = (layout.get("scales") or {}).get(entry.scale, (1, layout.get("width_multiple", 1)))[1]
    wide = next(iter(layout["backbone"][0][3]), None)
    return wide * width if isinstance(wide, int) else None


def _modules(layout: dict[str, Any]) -> int:
    blocks = layout.get("blocks", {})
    return sum(len(blocks[next(iter(line))]["layers"]) if isinstance(line, dict) else 1 for line in layout["layers"])


class Misfit(NamedTuple):
    """How near a model comes that is not the file's."""

    likeness: float  # 1: all tensors are the same ones
    text: str


def _misfit(weights: Any, entry: Any) -> Misfit | None:
    """None: each tensor has its place in the model, and it has no other."""
    from hwprof.workload.detector import build_detector
    from hwprof.workload.head_tensors import form_in

    try:
        form = form_in(weights.state, weights.described, entry)
    except UsageError as error:
        return Misfit(0.0, error.message)
    detector = build_detector(entry, 0, draw=False, **form._asdict())
    try:
        weights.load_into(detector.module, fuse=detector.fuse)
    except UsageError as error:
        return _compared(weights.state, entry.name, detector.module.state_dict(), error.message)
    return None


def _compared(state: Mapping[str, Any], name: str, own: Mapping[str, Any], otherwise: str) -> Misfit:
    """With the first tensor of another shape, else the numbers of those that only one of them has."""
    from hwprof.workload.state_differences import differences
    from hwprof.workload.tensors import shape_text
    from hwprof.workload.training_forms import deploy

    deployed, wanted = dict(state), dict(own)
    deploy(deployed, wanted)
    found = differences(deployed, wanted)
    all_names = len(deployed.keys() | wanted.keys())
    words = []
    if found.misshapen:
        first = found.misshapen[0]
        shapes = f"{first} is {shape_text(deployed[first])} in the file and {shape_text(wanted[first])} in the model"
        more = len(found.misshapen) - 1
        words.append(f"{shapes}{f' (and {more} more of another shape)' if more else ''}")
    sides = (("lacks", found.missing), ("has besides", found.unexpected), ("has of another kind", found.unlike))
    words += [
        f"the file {what} {len(names)} ({names[0]}{', …' if len(names) > 1 else ''})" for what, names in sides if names
    ]
    return Misfit(1 - sum(map(len, found)) / all_names, f"{name} is nearest: {'; '.join(words) or otherwise}")


def _nearest(weights: Any, tried: list[Misfit]) -> str:
    """``; yolov8n is nearest: …``; nothing where none is near."""
    if not tried:
        tried = [misfit for entry in _neighbours(weights) if (misfit := _misfit(weights, entry)) is not None]
    best = max(tried, key=lambda misfit: misfit.likeness, default=None)
    return f"; {printable(best.text[:LONGEST])}" if best is not None and best.likeness >= ALIKE else ""


def _neighbours(weights: Any) -> list[Any]:
    """A few models of about as many modules, and of about the same width: to build each takes part of a second."""
    from hwprof.workload.model_registry import read_yaml

    last, first = _size(weights)
    if last < 0:
        return []

    def distance(entry: Any) -> tuple[int, float]:
        layout = read_yaml(entry.file)
        return abs(_last(entry, layout) - last), abs((_width(entry, layout) or 0) - (first or 0))

    entries = {entry.name: entry for entry in _of_its_task(weights)}
    distances = {name: distance(entry) for name, entry in entries.items()}
    by_modules = sorted(distances, key=lambda name: distances[name])[:NEIGHBOURS]
    by_width = sorted(distances, key=lambda name: distances[name][::-1])[:NEIGHBOURS]
    return [entries[name] for name in dict.fromkeys([*by_modules, *by_width])]


def main(arguments: list[str]) -> None:
    """Prints an ``Answer``."""
    try:
        answer = Answer(model=recognise(Path(arguments[0])))
    except HwprofError as error:
        answer = Answer(message=error.message, remedy=error.remedy, exit_code=error.exit_code)
    sys.stdout.buffer.write(msgspec.json.encode(answer))


if __name__ == "__main__":
    main(sys.argv[1:])
