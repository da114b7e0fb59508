"""OpenVINO: its CPU plugin, and the times that it counts for each operator."""

from __future__ import annotations

import sys
from _thread import get_native_id
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from time import monotonic_ns
from typing import Any, Final, NamedTuple

import torch

from hwprof.workload.runtimes.exported import Exported
from hwprof.workload.runtimes.layer_spans import Worked, layer_spans
from hwprof.workload.runtimes.matching import members
from hwprof.workload.runtimes.operators import Operator, fused, places
from hwprof.workload.runtimes.products import products
from hwprof.workload.runtimes.runtime import Profile, RuntimeCall, arrays, loading

NAME: Final = "OpenVINO"
DEVICE: Final = "CPU"
TELEMETRY: Final = "openvino_telemetry"
"""The package that tells its maker of each import of OpenVINO; without it OpenVINO has a stub in its place."""

ORIGINS: Final = "originalLayersNames"
"""Where an executed operator has the names of those that it was made of, by comma."""

KIND: Final = "layerType"
"""Where it has what it is: a Convolution, a Subgraph."""

PARAMETER: Final = "Parameter"
"""What the model is given; it comes before what takes it."""

ADDED: Final = "/"
"""What the name of a part of one has behind it: ``node_conv2d/WithoutBiases``."""

UNIT_NS: Final = 1_000
MICROSECOND: Final = timedelta(microseconds=1)

NO_MOMENTS: Final = (
    f"{NAME} tells each operator's mean time in whole microseconds, of all calls until then, and not when it ran: a "
    "layer's time in one call is known to as many microseconds as there were calls; layers stand one after the other "
    "from the call's begin on, and no sample is any layer's; asking for the times is in (root) (own)"
)


class OpenVino:
    """Imported when it is needed."""

    name = NAME

    def session(self, model: Exported) -> _Session:
        """As ``Runtime``."""
        return _Session(model)

    def watched(self, model: Exported) -> _WatchedSession:
        """As ``Runtime``."""
        return _WatchedSession(model)


def _openvino() -> Any:
    """The package, which does not look for a network."""
    told = sys.modules.get(TELEMETRY)
    if told is None:
        sys.modules[TELEMETRY] = None  # type: ignore[assignment]  # Python's own word for: it cannot be imported
    try:
        import openvino
    finally:
        if told is None:
            sys.modules.pop(TELEMETRY, None)
    return openvino


class _Session:
    def __init__(self, model: Exported) -> None:
        with loading(NAME):
            self._compiled = _compiled(model, count=self._counts)
            self._request = self._compiled.create_infer_request()

    _counts = False

    def run(self, tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """As ``Session``; the tensors are new ones."""
        self._do(dict(enumerate(arrays(tensors, NAME))))
        outputs = range(len(self._compiled.outputs))
        return [torch.from_numpy(self._request.get_output_tensor(index).data.copy()) for index in outputs]

    def _do(self, given: dict[int, Any]) -> None:
        self._request.infer(given, share_inputs=True, share_outputs=True)


def _compiled(model: Exported, *, count: bool) -> Any:
    """With the model's own type: where there is hardware for it OpenVINO would take bfloat16."""
    settings = {
        "INFERENCE_NUM_THREADS": torch.get_num_threads(),
        "INFERENCE_PRECISION_HINT": "f32",
        "PERFORMANCE_HINT": "LATENCY",
        "PERF_COUNT": count,
    }
    core = _openvino().Core()
    return core.compile_model(core.read_model(str(model.file)), DEVICE, settings)


class Counted(NamedTuple):
    """An operator that was executed, and how long that took on average in all calls until then."""

    operator: str
    mean_ns: int


class _Call(NamedTuple):
    begin_ns: int
    end_ns: int
    thread: int
    counted: list[Counted]


class _WatchedSession(_Session):
    """It asks for the times behind each call."""

    _counts = True

    def __init__(self, model: Exported) -> None:
        super().__init__(model)
        with loading(NAME):
            executed = operators(self._compiled)
        does = members(model.graph, executed)
        self._places = places(model.graph, executed, does)
        self._products = products(model.graph, executed, does, self._places)
        self._calls: list[_Call] = []

    def _do(self, given: dict[int, Any]) -> None:
        begin = monotonic_ns()
        super()._do(given)
        end = monotonic_ns()
        self._calls.append(_Call(begin, end, get_native_id(), list(_counted(self._request))))

    def profile(self) -> Profile:
        """As ``WatchedSession``. How long operators took is known, and in which order, but not when."""
        found = []
        squeezed = 0
        for call, times in zip(self._calls, times_of([call.counted for call in self._calls]), strict=True):
            worked = laid_out(times, call.begin_ns, call.end_ns)
            squeezed += sum(times.values()) > call.end_ns - call.begin_ns
            found.append(RuntimeCall(call.begin_ns, call.end_ns, call.thread, layer_spans(worked, self._places)))
        notes = [NO_MOMENTS]
        if squeezed:
            notes.append(f"{NAME}'s times of {squeezed} calls come to more than the call took, and are made to fit")
        return Profile(found, notes=notes, fused=fused(self._places), products=self._products)


def _counted(request: Any) -> Iterator[Counted]:
    for one in request.get_profiling_info():
        if one.status == one.Status.EXECUTED:
            yield Counted(one.node_name, one.real_time // MICROSECOND * UNIT_NS)


def times_of(calls: Iterable[Sequence[Counted]]) -> Iterator[dict[str, int]]:
    """How long each operator took in each call, in ns, from the means until then: what is rounded in one call is made
    up for by the next, so that the sums are right to one unit a call."""
    told: defaultdict[str, int] = defaultdict(int)
    for number, counted in enumerate(calls, 1):
        times = {one.operator: max(0, number * one.mean_ns - told[one.operator]) for one in counted}
        for operator, time_ns in times.items():
            told[operator] += time_ns
        yield times


def laid_out(times: Mapping[str, int], begin_ns: int, end_ns: int) -> list[Worked]:
    """One after the other from the begin on, as no layer may have what lies between two; shorter, where they come to
    more than that time."""
    total = sum(times.values())
    fits = min(1.0, (end_ns - begin_ns) / total) if total else 1.0
    found = []
    at_ns = 0
    for operator, time_ns in times.items():
        found.append(Worked(operator, begin_ns + int(at_ns * fits), begin_ns + int((at_ns + time_ns) * fits)))
        at_ns += time_ns
    return found


def operators(compiled: Any) -> list[Operator]:
    """Of a compiled model, as they are executed: what is made of constants alone was done when it was compiled."""
    found: list[Operator] = []
    varies: set[str] = set()
    for node in compiled.get_runtime_model().get_ordered_ops():
        one = _operator(node)
        if node.get_type_name() == PARAMETER or not varies.isdisjoint(one.inputs):
            found.append(one)
            varies.update(one.outputs)
    return found


def _operator(node: Any) -> Operator:
    name = node.get_friendly_name()
    inputs = tuple(_value(value) for value in node.input_values())
    outputs = tuple(_value(value) for value in node.outputs())
    known = node.get_rt_info()
    told = str(known[ORIGINS].value) if ORIGINS in known else ""
    origins = tuple(one.partition(ADDED)[0] for one in told.split(",") if one)
    kind = str(known[KIND].value) if KIND in known else node.get_type_name()
    return Operator(name, kind, inputs, outputs, origins=origins)


def _value(value: Any) -> str:
    return f"{value.get_node().get_friendly_name()}:{value.get_index()}"
