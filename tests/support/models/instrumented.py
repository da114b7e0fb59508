"""Models that do what real ones do, as factories of a module and its example inputs: every one is called while its code
is followed. What a factory needs and does not find on the machine it says by ``UnsupportedError``."""

# mypy: disable-error-code="no-untyped-call"
# torch.jit and torch.ao have no types.

from __future__ import annotations

import operator
import threading
from typing import Any

import torch
from torch import nn

CHANNELS = 32
SIZE = 40


class UnsupportedError(Exception):
    """This build of torch, or this processor, has no such thing."""


def _image(size: int = SIZE) -> torch.Tensor:
    return torch.rand(1, 3, size, size)


def _convolutions() -> nn.Sequential:
    layers = [nn.Conv2d(3, CHANNELS, 3), nn.ReLU(), nn.Conv2d(CHANNELS, CHANNELS, 3), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(16 * CHANNELS, 64)).eval()


# --- numbers of fewer bits


def bfloat16() -> tuple[nn.Module, Any]:
    """All of it in bfloat16."""
    return _convolutions().bfloat16(), _image().bfloat16()


class Autocast(nn.Module):
    """Weights in float32, the work in bfloat16."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = _convolutions()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            result: torch.Tensor = self.inner(x)
        return result


def autocast() -> tuple[nn.Module, Any]:
    return Autocast(), _image()


def float16() -> tuple[nn.Module, Any]:
    """All of it in float16, which few processors have."""
    return _convolutions().half(), _image().half()


def int8_dynamic() -> tuple[nn.Module, Any]:
    """Linear layers quantized as they are called: fbgemm's JIT kernels."""
    model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 128)).eval()
    return torch.ao.quantization.quantize_dynamic(model, {nn.Linear}, dtype=torch.qint8), torch.rand(16, 256)


def int8_fbgemm() -> tuple[nn.Module, Any]:
    """Convolutions quantized beforehand, by fbgemm."""
    return _int8("fbgemm")


def int8_onednn() -> tuple[nn.Module, Any]:
    """The same by oneDNN, with VNNI where the processor has it."""
    return _int8("onednn")


def int8_x86() -> tuple[nn.Module, Any]:
    """The same by whichever of the two torch takes for the better."""
    return _int8("x86")


def _int8(engine: str) -> tuple[nn.Module, Any]:
    if engine not in torch.backends.quantized.supported_engines:
        raise UnsupportedError(f"torch has no quantization engine {engine}")
    torch.backends.quantized.engine = engine
    from torch.ao import quantization

    model = nn.Sequential(quantization.QuantStub(), *_convolutions(), quantization.DeQuantStub()).eval()
    model.qconfig = quantization.get_default_qconfig(engine)
    quantization.prepare(model, inplace=True)
    model(_image())
    quantization.convert(model, inplace=True)
    return model, _image()


# --- other ways to execute


def traced() -> tuple[nn.Module, Any]:
    """TorchScript."""
    x = _image()
    return torch.jit.trace(_convolutions(), x), x


class Halves(nn.Module):
    """Loops and branches by data."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        while bool(x.sum() > 100.0):
            if bool(x[0, 0] > 0.5):  # noqa: SIM108 - TorchScript's, too
                x = x * 0.5
            else:
                x = torch.sqrt(x) * x
        return x


def scripted() -> tuple[nn.Module, Any]:
    """TorchScript with control flow."""
    return torch.jit.script(Halves()), torch.rand(64, 64)


def frozen() -> tuple[nn.Module, Any]:
    """TorchScript that was optimized: its convolutions are oneDNN's fused ones, small chains are NNC's JIT code."""
    x = _image()
    return torch.jit.optimize_for_inference(torch.jit.trace(_convolutions(), x)), x


class Forks(nn.Module):
    """Two branches that TorchScript's inter-op threads work on at once."""

    def __init__(self) -> None:
        super().__init__()
        self.left = nn.Conv2d(3, CHANNELS, 3)
        self.right = nn.Conv2d(3, CHANNELS, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        left = torch.jit.fork(self.left, x)
        right = torch.jit.fork(self.right, x)
        result: torch.Tensor = torch.jit.wait(left) + torch.jit.wait(right)
        return result


def interop() -> tuple[nn.Module, Any]:
    return torch.jit.script(Forks()), _image(160)


def compiled() -> tuple[nn.Module, Any]:
    """Inductor's C++, compiled before it is followed. The product is long enough for its elementwise work (130 FLOPs a
    value, half of them the error function's) to be little beside it."""
    x = torch.rand(64, 2048)
    model: Any = torch.compile(nn.Sequential(nn.Linear(2048, 256), nn.GELU(), nn.LayerNorm(256)).eval())
    with torch.inference_mode():
        model(x)
    return model, x


class CompilesLate(nn.Module):
    """Inductor's compiler runs while it is followed: at the third call, when the model's input has another size."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = torch.compile(nn.Sequential(nn.Linear(64, 64), nn.GELU()), dynamic=False)
        self.calls = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        result: torch.Tensor = self.inner(x if self.calls < 3 else x[:16])
        return result[:8]


def compiled_late() -> tuple[nn.Module, Any]:
    return CompilesLate(), torch.rand(32, 64)


# --- what Python does


def data_dependent() -> tuple[nn.Module, Any]:
    return Halves(), torch.rand(64, 64)


class PythonThreads(nn.Module):
    """Each thread makes an OpenMP pool of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Conv2d(3, CHANNELS, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        made: list[torch.Tensor] = [torch.empty(0)] * 3

        def work(number: int) -> None:
            with torch.inference_mode():
                made[number] = self.inner(x + number)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(len(made))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return torch.cat(made)


def python_threads() -> tuple[nn.Module, Any]:
    return PythonThreads(), _image()


class WorksElsewhere(nn.Module):
    """A leaf whose products a thread of its own makes, while the caller waits."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        made: list[torch.Tensor] = []

        def work() -> None:
            with torch.inference_mode():
                made.extend(x @ x.T @ x for _ in range(8))

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        return made[0]


def works_elsewhere() -> tuple[nn.Module, Any]:
    return nn.Sequential(nn.Linear(512, 512), WorksElsewhere(), nn.Linear(512, 512)), torch.rand(512, 512) / 512


class Catches(nn.Module):
    """Exceptions that are thrown in C++, in a kernel's worker thread too, and caught in Python."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        caught = 0
        for bad in (
            lambda: x @ x[:, 1:].T[:3],
            lambda: torch.nn.functional.embedding(torch.full((4000,), 99), x[:5]),  # thrown within a parallel region
            lambda: torch.linalg.cholesky(-torch.eye(4)),
            lambda: operator.getitem(x, 10_000),
        ):
            for _ in range(3):
                try:
                    bad()
                except (RuntimeError, IndexError):
                    caught += 1
        return x * caught


def exceptions() -> tuple[nn.Module, Any]:
    return Catches(), torch.rand(64, 64)


class Deep(nn.Module):
    """As deep as Python's stack goes, through C where it can (each level a module's call)."""

    def __init__(self, depth: int) -> None:
        super().__init__()
        self.depth = depth

    def forward(self, x: torch.Tensor, level: int = 0) -> torch.Tensor:
        if level == self.depth:
            return x + 1
        result: torch.Tensor = self(x, level + 1)
        return result


def deep_recursion() -> tuple[nn.Module, Any]:
    return Deep(100), torch.rand(4)


class Unending(nn.Module):
    """A recursion that Python ends."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        def further(level: int) -> int:
            return further(level + 1)

        try:
            further(0)
        except RecursionError:
            return x + 1
        return x


def unending_recursion() -> tuple[nn.Module, Any]:
    return Unending(), torch.rand(4)


# --- other libraries' code


class Embeddings(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.bag = nn.EmbeddingBag(1000, 64, mode="mean")
        self.single = nn.Embedding(1000, 64)

    def forward(self, indices: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.bag(indices) + self.single(indices).sum(1)
        return result


def embedding_bag() -> tuple[nn.Module, Any]:
    return Embeddings(), torch.randint(0, 1000, (32, 16))


def lstm() -> tuple[nn.Module, Any]:
    return nn.LSTM(64, 128, num_layers=2, bidirectional=True), torch.rand(12, 4, 64)


class Attention(nn.Module):
    """Flash attention in C++."""

    def forward(self, q: torch.Tensor) -> torch.Tensor:
        return nn.functional.scaled_dot_product_attention(q, q * 0.5, q + 1, is_causal=True)


def attention() -> tuple[nn.Module, Any]:
    return Attention(), torch.rand(1, 4, 128, 32)


def transformer() -> tuple[nn.Module, Any]:
    """With the fused encoder layer."""
    return nn.TransformerEncoderLayer(64, 4, 128, batch_first=True).eval(), torch.rand(2, 32, 64)


def gemm() -> tuple[nn.Module, Any]:
    """MKL's, which chooses its own code by processor."""
    return nn.Linear(1024, 1024), torch.rand(128, 1024)


class Fourier(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = torch.fft.irfft2(torch.fft.rfft2(x) * 0.5)
        return result


def fft() -> tuple[nn.Module, Any]:
    return Fourier(), torch.rand(8, 128, 96)


class LinearAlgebra(nn.Module):
    """LAPACK, sorting, random numbers."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        positive = x @ x.T + torch.eye(x.shape[0])
        noise = torch.rand(x.shape, generator=torch.Generator().manual_seed(0))
        solved: torch.Tensor = torch.linalg.solve(positive, noise.sort(0).values)
        values: torch.Tensor = torch.linalg.svdvals(solved)
        return values


def yolov8n() -> tuple[nn.Module, Any]:
    """On small photographs."""
    from hwprof.workload.factory import build
    from hwprof.workload.spec import WorkloadSpec

    workload = build(WorkloadSpec(model="yolov8n", imgsz=128))
    workload.prepare()
    call = workload.forwards()[0]
    return call.module, call.arguments


def linear_algebra() -> tuple[nn.Module, Any]:
    return LinearAlgebra(), torch.rand(64, 64)
