"""The options that say which model to run and on what: shared by the commands that run one."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from hwprof import packages
from hwprof.cli import model_inputs, thread_numbers
from hwprof.cli.given import given
from hwprof.cli.numbers import RealRange
from hwprof.errors import HwprofError, UsageError
from hwprof.printable import as_written, is_text, one_line
from hwprof.workload.spec import WorkloadSpec

if TYPE_CHECKING:
    from hwprof.workload.model_registry import ModelEntry

Function = TypeVar("Function", bound=Callable[..., Any])

SEEDS: Final = range(-(1 << 63), 1 << 64)
"""What torch takes."""

PYTHON: Final = ".py"
LONGEST_NAME: Final = 200
"""Of a module, without its packages; file systems take 255 bytes."""

CHECKPOINTS: Final = (".pt", ".pth", ".ckpt", ".safetensors", ".weights")
"""How files end that somebody may give in the place of a model's name."""

_OPTIONS = (
    click.option(
        "--model",
        default="yolov7",
        show_default=True,
        metavar="NAME",
        help="yolov7, yolov5s, a model of ultralytics (yolov8n, yolo11s-seg, …), a Darknet .cfg, or"
        " package.module:factory of a module or (module, inputs).",
    ),
    click.option(
        "--weights",
        type=click.Path(),
        metavar="FILE",
        help="A checkpoint; without --model the model is the one that it belongs to. Default: seeded random weights.",
    ),
    click.option(
        "--source",
        metavar="PATH",
        help="An image, a folder, a glob, a video, a dataset's data.yaml or data.yaml:train, or camera:0. Default: the"
        " two photographs that ultralytics carries.",
    ),
    click.option(
        "--all-images",
        is_flag=True,
        help="Each iteration takes every image, or frame. Default: of a large source as many as take a second, of each"
        " shape.",
    ),
    click.option("--input-shape", metavar="N,C,H,W", help="Of a model of your own with one input, e.g. 1,3,224,224."),
    click.option(
        "--input",
        "inputs",
        multiple=True,
        metavar="SPEC",
        help=f"An input of a model of your own, {model_inputs.SYNTAX}, e.g. input_ids:1x128:int64:0..30000. Again for"
        " each.",
    ),
    click.option(
        "--imgsz",
        type=click.IntRange(32, 16384),
        help="Longer side, pixels; of classifiers the shorter one. Default: 640; of classifiers 224.",
    ),
    click.option("--batch", type=click.IntRange(1, 4096), default=1, show_default=True, help="Images a forward."),
    click.option("--threads", type=click.IntRange(min=1), help="Intra-op threads. Default: torch's own choice."),
    click.option(
        "--oversubscribe",
        is_flag=True,
        help=f"Allow --threads above {thread_numbers.A_PROCESSOR} a processor, to {thread_numbers.MOST}.",
    ),
    click.option("--seed", type=int, default=0, show_default=True, help="Of weights and inputs."),
    click.option("--conf", type=RealRange(0, 1), default=0.25, show_default=True, help="Least confidence."),
    click.option("--iou", type=RealRange(0, 1), default=0.45, show_default=True, help="Overlap kept by NMS."),
    click.option("--fuse/--no-fuse", default=True, show_default=True, help="Fold batch norms into convolutions."),
)


_OF_PIPELINES = ("source", "all_images", "imgsz", "batch", "conf", "iou", "fuse")
_OF_OWN_MODELS = ("input_shape", "inputs")
_OF_BOXES = ("conf", "iou")
"""Options by whom they are for; the others are for both."""
_SPELT: Final = {"inputs": "--input"}


def model_options(function: Function) -> Function:
    """Adds them to a command, which hands what it gets to ``workload_spec``."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


OF_EACH_CASE: Final = frozenset({"model", "imgsz", "batch", "threads", "oversubscribe"})
"""Of which a bench has lists."""


def bench_options(function: Function) -> Function:
    """Adds the others: what all cases of a bench have in common."""
    several: Any = model_options(function)
    kept = [one for one in several.__click_params__ if one.name not in OF_EACH_CASE]  # where click gathers them
    several.__click_params__ = kept
    return function


def workload_spec(
    *,
    model: str,
    weights: str | None,
    source: str | None,
    all_images: bool,
    input_shape: str | None,
    inputs: Sequence[str],
    imgsz: int | None,
    batch: int,
    threads: int | None,
    oversubscribe: bool,
    seed: int,
    conf: float,
    iou: float,
    fuse: bool,
) -> WorkloadSpec:
    """The workload that the options ask for; raises ``UsageError`` for what no machine could do."""
    if seed not in SEEDS:
        raise UsageError(f"--seed {seed} has more than 64 bits", "choose one from -2**63 to 2**64 - 1")
    if threads is not None:
        thread_numbers.check_threads(threads, oversubscribe=oversubscribe)
    if weights is not None and not given("model"):
        model = _model_of(weights)
    return WorkloadSpec(
        model=model,
        weights=weights,
        source=source,
        all_images=all_images,
        inputs=model_inputs.parse_inputs(input_shape, inputs),
        imgsz=imgsz,
        batch=batch,
        threads=threads,
        seed=seed,
        conf=conf,
        iou=iou,
        fuse=fuse,
    )


def _model_of(weights: str) -> str:
    """The model that a file of weights belongs to. Raises ``UsageError`` where that cannot be told."""
    from hwprof.workload.recognition import ask

    for library in ("torch", "ultralytics"):
        if find_spec(library) is None:
            raise HwprofError(f"{library} is not installed", packages.YOLO)
    model = ask(Path(weights))
    click.echo(f"{one_line(weights)} belongs to {one_line(model)}", err=True)
    return model


def check_model(spec: WorkloadSpec) -> None:
    """Refuses a model that does not exist, and options that it would not heed, before anything slow begins; raises
    ``UsageError``, and ``HwprofError`` where torch or ultralytics is not installed or there is no current folder."""
    try:
        here = str(Path.cwd())
    except OSError as error:  # neither a model's code nor torch's own libraries are found then
        raise HwprofError("the current folder is not there any more", "cd to one that is") from error
    if not is_text(here):
        raise HwprofError(
            f"the name of the current folder, {as_written(here)}, is not UTF-8", "cd elsewhere, or rename it"
        )
    _check_spelling(spec.model)
    own = ":" in spec.model
    theirs = _OF_PIPELINES if own else _OF_OWN_MODELS
    unheeded = _given_of(theirs)
    if unheeded and own:
        raise UsageError(f"{unheeded}: only for YOLO pipelines", "a model of yours gets --input-shape or --input")
    if unheeded:
        raise UsageError(f"{unheeded}: only for models of your own", "--imgsz and --batch for YOLO pipelines")
    for library in ("torch",) if own else ("torch", "ultralytics"):
        if find_spec(library) is None:
            raise HwprofError(f"{library} is not installed", packages.TORCH if own else packages.YOLO)


def _given_of(names: Sequence[str]) -> str:
    """Those of these options that were given, as they are typed."""
    return ", ".join(_SPELT.get(name, f"--{name.replace('_', '-')}") for name in names if given(name))


def _check_thresholds(entry: ModelEntry) -> None:
    """Raises ``UsageError`` for a threshold of boxes where the model finds none."""
    unheeded = _given_of(_OF_BOXES)
    if unheeded and not entry.task.thresholds:
        raise UsageError(f"{unheeded}: only for models that find boxes, {entry.name} does not", "leave it out")


def _check_spelling(model: str) -> None:
    """Raises ``UsageError`` for a model that there is not, with what is meant most likely."""
    module, colon, factory = model.partition(":")
    if colon:
        if module.endswith(PYTHON):
            meant = module.removesuffix(PYTHON).removeprefix("./").replace("/", ".")
            raise UsageError(f"{module} is a file, not a module", f"did you mean {meant}:{factory}?")
        if not all(part.isidentifier() and len(part) <= LONGEST_NAME for part in module.split(".")):
            raise UsageError(f"{module or 'nothing'} is no module's name", "package.module:factory")
        if module == "__main__":
            raise UsageError("__main__ is hwprof itself", "a module of yours, as package.module:factory")
        return
    from hwprof.workload.model_registry import CFG, find_model, known_models

    if model.endswith(CFG):
        from hwprof.workload.darknet_cfg import read_cfg

        read_cfg(Path(model))
        return
    try:
        entry = find_model(model)
    except UsageError:
        name = PurePath(model)
        known = {one.casefold(): one for one in known_models()}
        if name.suffix in CHECKPOINTS:
            named = known.get(name.stem.casefold(), "NAME")
            raise UsageError(f"{model} is a checkpoint", f"--model {named} --weights {shlex.quote(model)}") from None
        if model.casefold() in known:
            raise UsageError(f"there is no model {model}", f"did you mean {known[model.casefold()]}?") from None
        if _is_module(model.removesuffix(PYTHON)):
            meant = f"--model {model.removesuffix(PYTHON).replace('/', '.')}:FACTORY"
            raise UsageError(f"{model} is no YOLO model, and a model of yours needs its factory", meant) from None
        raise
    _check_thresholds(entry)


def _is_module(name: str) -> bool:
    """Whether Python would find a module of that name, here or among what is installed; imports nothing."""
    place = Path(name.replace(".", "/"))
    if not place.name:
        return False
    if place.with_suffix(PYTHON).is_file() or (place / "__init__.py").is_file():
        return True
    outermost = name.partition(".")[0]
    return outermost.isidentifier() and find_spec(outermost) is not None
