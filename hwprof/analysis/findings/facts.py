"""What rules look at, and what they find."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, NamedTuple

from hwprof.analysis.owners import INFERENCE


class Share(NamedTuple):
    """Of a time, with its 95% interval."""

    value: float
    low: float
    high: float


NOTHING = Share(0.0, 0.0, 0.0)

SETS_THREADS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "onnxruntime": "SessionOptions.intra_op_num_threads = {}",
        "openvino": "compile_model(…, {{'INFERENCE_NUM_THREADS': {}}})",
    }
)
"""By the variant that runs the model, what sets the number of its threads; PyTorch has its own."""

PAGE_FAULTS: Final = "page_faults"
ALLOCATION: Final = "allocation"

NO_FAULTS: Final = 0.01
"""Of the inference's time."""

ALL_BUT: Final = 0.95
"""Of the time: where others took less than the rest of it, there is no need to speak of them."""

LITTLE_ELSE: Final = 0.5
"""Of a layer's time."""

LEAST_LEFT: Final = 0.05
"""Of the time: where others had more, nothing is derived from what they left."""


class Layer(NamedTuple):
    """A layer's part of the inference's elapsed time, and the parts of that."""

    path: str
    of_whole: float  # by the main pass, in which nobody looks
    parts: Mapping[str, float]
    bound: str | None = None

    def lost(self, part: str) -> float:
        """Of the inference's time: what this layer has in the part."""
        return self.of_whole * self.parts.get(part, 0.0)

    def of_left(self, part: str) -> float:
        """Of the time in which others left this layer a processor."""
        return min(1.0, self.parts.get(part, 0.0) / max(LEAST_LEFT, 1 - self.parts.get("preempted", 0.0)))


class Kernel(NamedTuple):
    """Sampled code: its share of the inference's processor time."""

    name: str
    library: str
    share: Share
    domain: str = ""  # as in the table ``kernels``
    layers: Sequence[str] = ()  # that have most of its time, in order
    of_time: float = 0.0  # of the elapsed time: by its part of what layers compute, and these layers' times
    within: float = 1.0  # of the elapsed time: all of the layers that it is in

    @property
    def at_most(self) -> Share:
        """The larger of both shares: threads that wait spin, and take of the processor time what is no work. No more
        than its layers take: an interval of few samples is wider than these."""
        times = max(1.0, self.of_time / self.share.value) if self.share.value else 1.0
        return Share(*(min(1.0, self.within, times * one) for one in self.share))

    @property
    def evidence(self) -> str:
        """The share that ``at_most`` is of, with its interval: what could be won is the upper end of that."""
        if self.of_time > self.share.value:
            return f"{percent(self.at_most)} of the time"
        return f"{percent(self.share)} of the CPU time"


class Pooling(NamedTuple):
    """A layer that takes the largest of each window, at every place of its input."""

    path: str
    size: int  # of the window, in each dimension


class Fallback(NamedTuple):
    """Code that a library takes where it has none made for the case."""

    implementation: str
    share: float
    reason: str
    remedy: str | None
    layers: Sequence[str]


class Clock(NamedTuple):
    """The core's frequency, by quarters of its probes: the median and the range of nine in ten of each."""

    first: Share
    second: Share
    third: Share
    last: Share


@dataclass(frozen=True)
class Facts:
    """Of one run. Shares are of the inference's elapsed time, unless it is said otherwise."""

    parts: Mapping[str, Share] = field(default_factory=dict)  # the time budget's
    layers: Sequence[Layer] = ()
    kernels: Sequence[Kernel] = ()
    stages: Mapping[str, float] = field(default_factory=dict)  # of an iteration
    anew: Sequence[str] = ()  # layers that get their memory anew at each call
    faults: float | None = None  # page faults of an inference, where they were counted
    timed_new_pages: float | None = None  # of the inference: page faults of a timed iteration; None: not known
    torch_takes_them: bool = False  # torch allocates as much as those have
    new_pages: Mapping[str | None, float] = field(
        default_factory=dict
    )  # by layer, None: the inference: its page faults by what one costs on this machine
    malloc: str | None = None  # who gives memory: glibc, jemalloc, …
    vendor: str = ""
    virtual: bool = False  # a virtual machine, whose host has other guests
    gemm_of_roof: float | None = None  # of the FP32 peak: what a large product by the library attains; None: unknown
    compiled: bool = False  # by torch.compile or another runtime: there is nothing to compile
    variants: Sequence[str] = ()  # of the remedies those that the run had
    emulated: Mapping[str, str] = field(default_factory=dict)  # by layer: types that the processor does not multiply
    bfloat16: bool = True  # whether the processor multiplies them, as far as anybody knows
    threads: int = 1
    processors: int = 1  # that the workload might use
    convolutions: int = 0  # layers that convolve
    ready: float | None = None  # threads of the process that ran or were ready to, at a time, on average
    other_threads: Mapping[str, float] = field(default_factory=dict)  # beside the team, by name: how many ran at a time
    team_preempted: float = 0.0  # for how long a thread of the team was ready and had no processor, over all of them
    cores: int | None = None  # physical ones, that the workload might use; None: not known
    shared_core: float | None = None  # of the team's time: while another of its threads was on the same core
    nodes: Sequence[float] = ()  # of the team's time, by NUMA node, most first
    node_cores: int | None = None  # of a NUMA node
    clock: Clock | None = None  # GHz
    serial: Sequence[str] = ()  # layers whose work one of several threads does
    imbalance: Mapping[str, float] = field(
        default_factory=dict
    )  # by layer: busiest thread's time over the mean, less 1
    python: Share = NOTHING  # the calling thread in the interpreter's own code
    python_of_calls: float = 0.0  # of it what calling the layers takes, roughly
    weight_reorders: Share = NOTHING
    weight_layers: Sequence[str] = ()
    denormals: Mapping[str, float] = field(default_factory=dict)  # by layer: of the numbers that it reads and writes
    poolings: Sequence[Sequence[Pooling]] = ()  # of each input that several poolings read, by size
    fallbacks: Sequence[Fallback] = ()  # of oneDNN's, most time first

    def with_threads(self, number: int) -> str:
        """What gives the runtime that runs the model so many threads."""
        settings = (SETS_THREADS[one] for one in self.variants if one in SETS_THREADS)
        return next(settings, "torch.set_num_threads({})").format(number)

    @property
    def no_new_pages(self) -> bool:
        """Whether what was timed had no page faults to speak of: those that samples met are the profilers' own."""
        return self.timed_new_pages is not None and self.timed_new_pages < NO_FAULTS

    @property
    def left(self) -> float:
        """The part of the elapsed time in which others left the calling thread a processor: what others do is no cause,
        and what the model loses is lost of this time, on a quiet machine of all."""
        return max(LEAST_LEFT, 1 - self.parts.get("preempted", NOTHING).value)

    @property
    def of_time(self) -> str:
        """What shares of the time ``left`` are of, where that is another one."""
        return "of the time" if self.left >= ALL_BUT else "of the time that others left"

    def part(self, name: str) -> Share:
        """Of the time budget, and of the time ``left``; nothing where there is none."""
        return self.of_left(self.parts.get(name, NOTHING))

    def of_work(self, share: Share) -> Share:
        """What is a share of the processor time, of the elapsed time at most: not more than the calling thread does its
        own work in, where that is known."""
        most = self.part("compute")
        return Share(*(min(one, most.high) for one in share)) if "compute" in self.parts else share

    def of_left(self, share: Share) -> Share:
        """Of the time ``left``, what is a share of the elapsed time."""
        return Share(*(min(1.0, one / self.left) for one in share))

    def time_of(self, paths: Collection[str], part: str | None = None) -> float:
        """These layers' time; where a part of the budget is named, that of the time ``left``."""
        chosen = [one for one in self.layers if one.path in paths]
        if part is None:
            return sum(one.of_whole for one in chosen)
        return min(1.0, sum(one.lost(part) for one in chosen) / self.left)

    def left_in(self, paths: Collection[str]) -> float:
        """Of the time ``left``, all that others left of these layers, or their time in the main pass, whichever is
        more: others need not have been in the way there."""
        chosen = [one for one in self.layers if one.path in paths]
        left = sum(one.of_whole * (1 - one.parts.get("preempted", 0.0)) for one in chosen) / self.left
        return min(1.0, max(self.time_of(paths), left))

    def time_at_most(self, paths: Collection[str], part: str) -> float:
        """Of the time ``left``, what a part of the budget takes in these layers at most: what samples met and its error
        in the whole, or all the time that others left of layers that may do little else, whichever is more. Not
        more than these layers take. ``at_most`` says so."""
        known = self.part(part)
        error = known.high - known.value
        mostly = {one.path for one in self.layers if one.path in paths and one.of_left(part) + error >= LITTLE_ELSE}
        others = self.time_of([path for path in paths if path not in mostly], part)
        most = max(self.time_of(paths, part) + error, self.left_in(mostly) + others)
        return min(self.left_in(paths), most)

    def new_memory(self, paths: Collection[str] | None = None) -> float:
        """Of the time ``left``, what new pages and ``malloc`` take at most, in these layers or in all: by the samples,
        by what a page fault costs, or all the time of layers that do little else, whichever is most. Some of it is met
        in the code that faults: the processor enters and leaves the kernel with interrupts off, so that no sample
        can meet it there; and what is read next is no longer in the caches. Not more than these layers take."""
        if self.no_new_pages:
            return 0.0
        if paths is None:
            sampled, own = self.part(PAGE_FAULTS).high + self.part(ALLOCATION).high, self.new_pages.get(None, 0.0)
        else:
            sampled = self.time_of(paths, PAGE_FAULTS) + self.time_of(paths, ALLOCATION)
            own = sum(self.new_pages.get(path, 0.0) for path in paths)
        faulting = {one.path for one in self.layers if one.of_left(PAGE_FAULTS) >= LITTLE_ELSE}
        whole = self.left_in(faulting if paths is None else faulting.intersection(paths))
        return min(1.0 if paths is None else self.left_in(paths), max(sampled, own / self.left, whole))

    def longest(self, paths: Collection[str], number: int = 3) -> list[str]:
        """Of these layers the ones that take most, in order."""
        ordered = sorted((one for one in self.layers if one.path in paths), key=lambda one: -one.of_whole)
        return [one.path for one in ordered[:number]]

    def most_in(self, part: str, number: int = 3) -> list[str]:
        """The layers that lose most to it, in order."""
        ordered = sorted(self.layers, key=lambda layer: -layer.lost(part))
        return [layer.path for layer in ordered[:number] if layer.lost(part) > 0]


class Finding(NamedTuple):
    """A cause of lost time."""

    rule: str
    title: str  # "layout changes around convolutions"
    evidence: str  # "8.0% of the time ±0.6, most in model.1.conv, …"
    meaning: str
    remedy: str | None  # what to type; None: nothing that the run has not already
    gain_low: float  # of the inference's time, that could be won: an interval, no promise
    gain_high: float
    layers: Sequence[str] = ()
    stage: str | None = None  # that it is about; None: the inference, or layers of it
    gain_of: str = INFERENCE  # or "iteration"
    remedies: Sequence[str] = ()  # those that hwprof can try (remedies/remedies.toml)
    by_hand: str | None = None  # what to do where none of these helps
    shared: Mapping[str, float] = MappingProxyType({})  # of ``gain_high``: what another rule counts too


def percent(share: Share) -> str:
    """``8.0% (7.2 to 8.9%)``; without the interval where it has no width that shows."""
    low, high = f"{100 * share.low:.1f}", f"{share.high:.1%}"
    return f"{share.value:.1%}" if f"{low}%" == high else f"{share.value:.1%} ({low} to {high})"


def at_most(most: float, said: float) -> str:
    """``; 39.0% at most``: where more could be won than the evidence before it ``said``."""
    return f"; {most:.1%} at most" if f"{most:.1%}" != f"{said:.1%}" else ""


def counted(number: int, one: str, many: str) -> str:
    """``1 layer runs``, ``2 layers run``."""
    return f"{number} {one if number == 1 else many}"


def named(layers: Sequence[str]) -> str:
    """``, most in a, b, c``; nothing where there is none."""
    return f", most in {', '.join(layers)}" if layers else ""
