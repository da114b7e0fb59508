"""The built-in workload: images, or frames of a video, through a YOLO pipeline."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Final

import torch

from hwprof.errors import UsageError
from hwprof.run.manifest import WorkloadRecord
from hwprof.workload import not_finite
from hwprof.workload.calibration import CANDIDATES_PER_IMAGE, MOST_IMAGES, calibrate
from hwprof.workload.checkpoints import Weights, read_checkpoint
from hwprof.workload.detector import Detector, build_detector
from hwprof.workload.head_tensors import HeadForm, form_in
from hwprof.workload.heads import TaskEntry
from hwprof.workload.libraries import require_ultralytics
from hwprof.workload.model_registry import find_model
from hwprof.workload.pipeline import Pipeline
from hwprof.workload.preprocessing import Shape
from hwprof.workload.protocol import Call, Outputs, Stages, unmarked
from hwprof.workload.shared_weights import SharedWeights
from hwprof.workload.sources.finding import find_source
from hwprof.workload.sources.image_sample import enough
from hwprof.workload.sources.protocol import More, Source, Taken
from hwprof.workload.spec import WorkloadSpec
from hwprof.workload.tensors import refused, shape_text
from hwprof.workload.thread_number import set_threads

LIBRARIES: Final = ("nn.tasks", "data.augment", "utils.nms", "utils.ops", "utils.plotting")
"""What the pipeline's modules ask for of ultralytics."""


def preload() -> None:
    """Imports what preparing and iterating would import. Raises ``HwprofError`` where it is not installed."""
    for name in LIBRARIES:
        require_ultralytics(name)


class YoloWorkload:
    """A model by name, over the images of the source, in batches."""

    modules: Mapping[str, torch.nn.Module]
    shapes_suffice = True

    def __init__(self, spec: WorkloadSpec, shared: SharedWeights | None = None) -> None:
        """``shared``: where calibrated weights are taken from, or left for the next pass."""
        if spec.batch < 1:
            raise UsageError(f"--batch {spec.batch}: a batch has at least one image")
        if spec.imgsz is not None and spec.imgsz < 1:
            raise UsageError(f"--imgsz {spec.imgsz}: the image size is a number of pixels, 640 for one")
        for option, value in (("--conf", spec.conf), ("--iou", spec.iou)):
            if not 0.0 <= value <= 1.0:
                raise UsageError(f"{option} {value:g}: a threshold lies between 0 and 1")
        self._spec = spec
        self._shared = shared if spec.weights is None else None
        self._kept_frames = shared.frames if shared is not None else None
        self._entry = find_model(spec.model)
        self.modules = {}
        self._found: list[torch.Tensor] = []

    def prepare(self, *, values: bool = True) -> WorkloadRecord:
        """Builds, initialises or loads, and fuses the model, and reads every image of an iteration once."""
        spec = self._spec
        set_threads(spec.threads)
        source = find_source(spec, self._kept_frames)
        loaded = spec.weights is not None or (self._shared is not None and self._shared.available)
        checkpoint = read_checkpoint(Path(spec.weights)) if spec.weights is not None else None
        detector = self._build(checkpoint, source, draw=values and not loaded)
        unfused = _parameters(detector)
        task = self._entry.task
        asked = spec.imgsz or task.image_size
        imgsz = math.ceil(asked / detector.stride) * detector.stride
        self._pipeline = Pipeline(detector, imgsz, spec.conf, spec.iou)
        first = self._take(source.few(self._pipeline.shape_of))
        fused = ((values or checkpoint is not None) and self._weigh(detector, first, checkpoint)) or spec.fuse
        unsound = not_finite.told(detector.module) if checkpoint is not None else None
        if spec.fuse:
            detector.fuse()
        self._detector = detector
        self.modules = {"": detector.module}
        if more := source.more():
            pixels = math.prod if values else _one  # without values only shapes matter
            self._take(source.take(self._numbers(more, values=values), pixels))
        taken = self._taken
        return WorkloadRecord(
            name=spec.model,
            kind="yolo",
            weights=spec.weights or f"random (seed {spec.seed})",
            weights_unsound=unsound,
            parameters=_parameters(detector),
            parameters_unfused=unfused,
            fused=fused,
            threads=torch.get_num_threads(),
            batch=spec.batch,
            input_shapes=list(dict.fromkeys(shape_text(batch) for batch in self._inputs)),
            sources=list(taken.sources),
            images_there=taken.there,
            more_pixels=taken.more_pixels,
            video=source.described(),
            forwards=len(taken.names),
            notes=[*notes_of(spec, task, asked, detector.stride), *taken.notes],
            options={"imgsz": imgsz, **_thresholds(spec, task), "seed": spec.seed},
        )

    def iterate(self, stages: Stages, save_to: Path | None, outputs: Outputs | None = None) -> None:
        """Every image once; drawn pictures go into ``save_to`` under the image's own name, as JPEG, frames as a
        video."""
        found: list[torch.Tensor] = []
        batches = self._taken.read(stages)
        with torch.inference_mode(), closing(self._taken.pictures(save_to)) as pictures:
            for images in batches:
                found += self._pipeline.run(images, stages, pictures, outputs)
        self._found = found

    def forwards(self) -> list[Call]:
        """The model with an input (B, 3, H, W) for each batch; batches of one shape share one tensor."""
        return [Call(self._detector.module, (batch,)) for batch in self._inputs]

    def results(self) -> list[str]:
        """``bus.jpg 640x480: 5 boxes (4 person, 1 bus)``, or what else the task finds, one an image; the shape is the
        model's input, height first.

        Without the classes where the weights are random, as they mean nothing then.
        """
        places = [
            (name, f"{inputs.shape[-2]}x{inputs.shape[-1]}")
            for batch, inputs in zip(self._taken.names, self._inputs, strict=True)
            for name in batch
        ]
        named = self._spec.weights is not None
        return [
            f"{name} {shape}: {self._pipeline.summary(found, named=named)}"
            for (name, shape), found in zip(places, self._found, strict=False)
        ]

    def boxes(self) -> list[torch.Tensor] | None:
        """In the pixels of the images themselves."""
        found = [self._pipeline.boxes(one) for one in self._found]
        known = [one for one in found if one is not None]
        return known if len(known) == len(found) else None

    def _numbers(self, more: More, *, values: bool) -> range:
        """How many batches an iteration may take: as many as that of the pass before; else by the model and how long a
        forward of the first takes; without ``values`` one of each shape is enough."""
        if self._spec.forwards or not values:
            number = self._spec.forwards or more.shapes
            return range(number, number + 1)
        forward = self.forwards()[0]
        with torch.inference_mode():
            forward.run()  # what is done once
            began_s = time.perf_counter()
            forward.run()
        once_s = time.perf_counter() - began_s
        number = enough(more.batches, more.shapes, once_s, sum(1 for _ in self._detector.module.modules()))
        return range(number, 2 * number + 1)

    def _take(self, taken: Taken) -> list[torch.Tensor]:
        """Makes these an iteration's. Reads every image of them, so that a broken one is known now, and keeps one input
        of each shape; the first few batches are returned."""
        self._taken = taken
        first: list[torch.Tensor] = []
        kept: dict[torch.Size, torch.Tensor] = {}
        self._inputs = []
        for images in taken.read(unmarked):
            batch = self._pipeline.preprocess(images)
            self._inputs.append(kept.setdefault(batch.shape, batch))
            if len(first) < MOST_IMAGES:
                first.append(batch)
        return first

    def _build(self, checkpoint: Weights | None, source: Source, *, draw: bool) -> Detector:
        """The model, with the checkpoint's classes and keypoints, and the names of its classes, else of the dataset's,
        where it has as many."""
        form = form_in(checkpoint.state, checkpoint.described, self._entry) if checkpoint is not None else HeadForm()
        detector = build_detector(self._entry, self._spec.seed, draw=draw, **form._asdict())
        if checkpoint is not None and sorted(checkpoint.names) == list(detector.names):
            detector.names = dict(checkpoint.names)
        elif source.class_names is not None and len(source.class_names) == len(detector.names):
            detector.names = dict(enumerate(source.class_names))
        return detector

    def _weigh(self, detector: Detector, first: list[torch.Tensor], checkpoint: Weights | None) -> bool:
        """Gives the model its weights: the checkpoint's, or random ones that behave. Whether they came fused."""
        if checkpoint is not None:
            return checkpoint.load_into(detector.module, fuse=detector.fuse)
        if self._shared is not None and self._shared.available:
            self._shared.load(detector.module)
            return False
        try:
            calibrate(detector, first, self._spec.conf)
        except (RuntimeError, ValueError) as error:
            raise refused(self._spec.model, first, error) from error
        if self._shared is not None:
            self._shared.save(detector.module)
        return False


def _one(_: Shape) -> int:
    return 1


def _parameters(detector: Detector) -> int:
    return sum(parameter.numel() for parameter in detector.module.parameters())


def _thresholds(spec: WorkloadSpec, task: TaskEntry) -> dict[str, float]:
    """Those that the task heeds."""
    return {"conf": spec.conf, "iou": spec.iou} if task.thresholds else {}


def notes_of(spec: WorkloadSpec, task: TaskEntry, asked: int, stride: int) -> list[str]:
    """What is to be said of the work that this asks for, with images of ``asked`` pixels."""
    notes = []
    if asked % stride:
        used = math.ceil(asked / stride) * stride
        notes.append(f"image size {asked} is no multiple of the model's stride {stride}: {used} is used")
    if spec.weights is None:
        done = ", and the head's biases are set for up to about {} candidates an image" if task.thresholds else ""
        notes.append(
            f"random weights: batch-norm statistics are the input's{done.format(CANDIDATES_PER_IMAGE)}; "
            f"{task.meaningless} mean nothing"
        )
    return notes
