"""ONNX Runtime: on its CPU provider, with all of its optimisations, and its own profiling of operators."""

from __future__ import annotations

from _thread import get_native_id
from collections.abc import Iterator, Sequence
from io import BufferedReader
from pathlib import Path
from time import monotonic_ns, time_ns
from typing import Any, Final

import msgspec
import torch

from hwprof.errors import HwprofError, described
from hwprof.workload.runtimes.exported import Exported
from hwprof.workload.runtimes.layer_spans import Worked, layer_spans
from hwprof.workload.runtimes.matching import members
from hwprof.workload.runtimes.operators import Operator, fused, places
from hwprof.workload.runtimes.products import products
from hwprof.workload.runtimes.runtime import Mark, Profile, RuntimeCall, arrays, loading

NAME: Final = "ONNX Runtime"
PROVIDERS: Final = ("CPUExecutionProvider",)
ERRORS: Final = 3
"""What it logs: no warnings."""

RUN: Final = "model_run"
"""The event of a whole call, which comes behind those of its operators."""

OPERATOR: Final = "Node"
"""The category of an operator's event."""

KERNEL: Final = "_kernel_time"
"""What its name ends in."""

NCHWC: Final = "_nchwc"
"""What it calls an operator in its own layout: the name of what comes out, with this behind it."""

FUSED: Final = "/"
"""What a fused operator's name has behind that of the last one that it was made of."""

LAYOUTS: Final = frozenset({"ReorderInput", "ReorderOutput"})
"""What changes between its own layout and ONNX's; the latter gives a value of the exported model's name."""

ACTIVATION: Final = "activation"
"""The attribute in which a convolution names what it does to each of its results."""

UNIT_NS: Final = 1_000
"""Its stamps are whole microseconds."""

EXTERNAL: Final = {
    "session.optimized_model_external_initializers_file_name": "weights",
    "session.optimized_model_external_initializers_min_size_in_bytes": "64",
}
"""The optimised model is wanted without its weights."""


class OnnxRuntime:
    """Imported when it is needed."""

    name = NAME

    def session(self, model: Exported) -> _Session:
        """As ``Runtime``."""
        return _Session(model)

    def watched(self, model: Exported) -> _WatchedSession:
        """As ``Runtime``."""
        return _WatchedSession(model)


class _Session:
    def __init__(self, model: Exported) -> None:
        with loading(NAME):
            self._session = self._made(model)
        self._names = [one.name for one in self._session.get_inputs()]

    def run(self, tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """As ``Session``; the tensors are new ones."""
        given = dict(zip(self._names, arrays(tensors, NAME), strict=True))
        return [torch.from_numpy(one) for one in self._done(given)]

    def _made(self, model: Exported) -> Any:
        return _opened(model.file, _options())

    def _done(self, given: dict[str, Any]) -> Any:
        return self._session.run(None, given)


def _options() -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    options.log_severity_level = ERRORS
    return options


def _opened(file: Path, options: Any) -> Any:
    import onnxruntime

    return onnxruntime.InferenceSession(str(file), options, providers=list(PROVIDERS))


class _WatchedSession(_Session):
    """The file that it writes at the end is open already, and has no name any more then."""

    def _made(self, model: Exported) -> Any:
        folder = model.file.parent
        options = _options()
        options.enable_profiling = True
        options.profile_file_prefix = str(folder / "profile")
        options.optimized_model_filepath = str(folder / "optimised.onnx")
        for key, value in EXTERNAL.items():
            options.add_session_config_entry(key, value)
        found = _opened(model.file, options)
        (file,) = folder.glob("profile*")
        self._file = file.open("rb")
        self._begin_ns = found.get_profiling_start_time_ns()
        executed = operators(folder / "optimised.onnx")
        does = members(model.graph, executed)
        self._places = places(model.graph, executed, does)
        self._products = products(model.graph, executed, does, self._places)
        self._marks: list[Mark] = []
        self._windows: list[tuple[int, int, int]] = []
        return found

    def _done(self, given: dict[str, Any]) -> Any:
        before = monotonic_ns()
        stamp = time_ns()
        begin = monotonic_ns()
        found = self._session.run(None, given)
        end = monotonic_ns()
        self._marks.append((stamp, before, begin))
        self._windows.append((begin, end, get_native_id()))
        return found

    def profile(self) -> Profile:
        """As ``WatchedSession``. Its clock is CLOCK_REALTIME, as C++'s is."""
        with loading(NAME):
            self._session.end_profiling()
        with self._file:
            runs = list(runs_of(self._file, self._begin_ns))
        calls = [
            RuntimeCall(*window, layer_spans(run, self._places))
            for window, run in zip(self._windows, runs, strict=False)
        ]
        lacking = len(self._windows) - len(calls)
        notes = (
            [f"{NAME} kept no times of its last {lacking} calls: it keeps a million of operators"] if lacking else []
        )
        return Profile(calls, NAME, self._marks, UNIT_NS, fused(self._places), notes, self._products)


class _Event(msgspec.Struct):
    name: str
    cat: str
    ts: int
    dur: int


def runs_of(file: BufferedReader, begin_ns: int) -> Iterator[list[Worked]]:
    """The operators of each call by the clock that said ``begin_ns`` when the profile began: an event a line. Raises
    ``HwprofError`` where it is no such file."""
    decoder = msgspec.json.Decoder(_Event)
    worked: list[Worked] = []
    try:
        for line in file:
            text = line.strip().rstrip(b",")
            if not text.startswith(b"{"):
                continue
            event = decoder.decode(text)
            begin = begin_ns + event.ts * UNIT_NS
            if event.cat == OPERATOR:
                _append(worked, Worked(event.name.removesuffix(KERNEL), begin, begin + event.dur * UNIT_NS))
            elif event.name == RUN:
                yield worked
                worked = []
    except (msgspec.MsgspecError, OSError) as error:
        raise HwprofError(f"{NAME}'s profile cannot be read: {described(error)}") from error


def _append(worked: list[Worked], one: Worked) -> None:
    """Operators in the branch of another one come before it: their time is its own."""
    while worked and worked[-1].begin_ns >= one.begin_ns and worked[-1].end_ns > one.begin_ns:
        worked.pop()
    worked.append(one)


def operators(file: Path) -> list[Operator]:
    """Of the model as ONNX Runtime executes it."""
    import onnx

    nodes = onnx.load(str(file), load_external_data=False).graph.node
    return [
        Operator(
            one.name,
            one.op_type,
            tuple(one.input),
            tuple(one.output),
            origins=_origins(one.name),
            ends_in=next((value.s.decode() for value in one.attribute if value.name == ACTIVATION), None),
            moves=one.op_type in LAYOUTS,
        )
        for one in nodes
    ]


def _origins(name: str) -> tuple[str, ...]:
    """What its name tells: ``conv2d_nchwc`` gives what ``conv2d`` is; ``node_silu/QuickGeluFusion/``."""
    return (name.removesuffix(NCHWC), name.partition(FUSED)[0])
