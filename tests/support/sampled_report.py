"""The report of a synthetic run with samples, as tests of it ask for it."""

from __future__ import annotations

import io

from rich.console import Console

from hwprof.cli import app
from hwprof.report.document.document import Document
from hwprof.report.document.hot_kernels import select as hot_kernels_of
from hwprof.report.document.kernels import Kernels, SampledKernel
from hwprof.report.document.layers import Layers, Module
from hwprof.report.document.one_layer import one_layer as one_layer_of
from hwprof.report.text import hot_kernels, one_layer, report
from hwprof.report.text.page import Page
from hwprof.run.directory import RunDirectory
from tests.support.document_parts import part

CONV, OTHER_CONV, ACT = "model.1.cv1.conv", "model.0.conv", "model.1.cv1.act"
JIT, SILU, BARRIER = "jit_conv_fwd", "at::native::silu_kernel", "gomp_barrier_wait"


def samples_of(built: Document) -> Kernels:
    """What was sampled."""
    return part(built, Kernels)


def layers_of(built: Document) -> list[Module]:
    """The modules around the layers."""
    return part(built, Layers).modules


def kernel(sampled: Kernels, name: str, layer: str | None = None) -> SampledKernel:
    """Of a layer, or of all."""
    (found,) = [one for one in sampled.kernels if (one.kernel, one.layer) == (name, layer)]
    return found


def printed(built: Document, width: int, part: str | None = None, top: int = 3, *, full_names: bool = False) -> str:
    """The report, its part ``--kernels`` (an empty path), or ``--layer PATH``."""
    console = Console(file=io.StringIO(), width=width, highlight=False, markup=False, emoji=False)
    page = Page(built, console)
    if part is None:
        report.render(built, console)
    elif part:
        one_layer.show(one_layer_of(built, part), page, full_names=full_names)
    else:
        hot_kernels.show(hot_kernels_of(built, top), page, full_names=full_names)
    assert isinstance(console.file, io.StringIO)
    return "".join(f"{line.rstrip()}\n" for line in console.file.getvalue().splitlines())


def section_of(text: str, title: str) -> list[str]:
    """The lines of a section of the text, to the next empty one that is not above the line on waiting."""
    lines = text.splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith(title))
    ends = (number for number in range(start, len(lines)) if not lines[number])
    end = next((number for number in ends if not "".join(lines[number + 1 : number + 2]).startswith("waiting ")), None)
    return lines[start + 1 : end]


def command(run: RunDirectory, *arguments: str) -> int:
    """The exit code of ``hwprof report``."""
    return app.run(["report", str(run.path), *arguments])
