"""Names in a real process: against readelf's, of everything that a small network executes, and of oneDNN's dump."""

from __future__ import annotations

import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest

from collectors.shared.symbols.library import open_library
from tests.support.instrumented_process import child
from tests.support.requirements import require_module, require_tool

NETWORK = """
    import torch
    net = torch.nn.Sequential(
        torch.nn.Conv2d(16, 32, 3), torch.nn.BatchNorm2d(32), torch.nn.SiLU(), torch.nn.MaxPool2d(2),
        torch.nn.Conv2d(32, 32, 1), torch.nn.Softmax(1), torch.nn.Flatten(), torch.nn.Linear(32 * 31 * 31, 64),
    ).eval()
    x = torch.randn(1, 16, 64, 64)
"""


@pytest.fixture(scope="module")
def libtorch() -> Path:
    require_module("torch")
    found = find_spec("torch")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent / "lib" / "libtorch_cpu.so"


def test_libtorchs_functions_are_those_that_readelf_lists(
    libtorch: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every function, where it begins and ends; from the file, and again from the cache."""
    command = [require_tool("readelf"), "-W", "--symbols", str(libtorch)]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    listed: dict[int, set[tuple[str, int]]] = {}
    for line in text[text.index("'.symtab'") :].splitlines():
        fields = line.split()
        if len(fields) >= 8 and fields[3] in ("FUNC", "IFUNC") and fields[6] != "UND":
            listed.setdefault(int(fields[1], 16), set()).add((fields[7], int(fields[2], 0)))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for time in ("first", "from the cache"):
        open_library.cache_clear()
        table = open_library(libtorch).symbols
        found = {
            start: (table.name(number), end - start)
            for number, (start, end) in enumerate(zip(table.starts.tolist(), table.ends.tolist(), strict=True))
        }
        stubs = {name for name, _ in (found.pop(start) for start in found.keys() - listed.keys())}
        assert stubs == {".plt"}, time
        assert found.keys() == listed.keys(), time
        for start, (name, size) in found.items():
            sizes = {length for alias, length in listed[start] if alias == name}
            assert size in sizes or sizes == {0}, time
        assert len(list(tmp_path.rglob("*.npz"))) == 1
    open_library.cache_clear()


def test_what_a_network_executes_has_names(tmp_path: Path) -> None:
    """Instructions of every library by whether they have a name: all of libtorch, of JIT code and of the OpenMP
    runtime, most of whose names are in its MiniDebugInfo. The rest depends on what the distribution strips."""
    said = child(
        NETWORK
        + """
    import numpy as np
    from collectors.instrumented.accounting import starts_of
    from collectors.instrumented.facts import Fact
    from collectors.instrumented.log import Log
    from collectors.shared.symbols.domains import Domain
    from collectors.shared.symbols.jit import Known, keep_perf_map
    from collectors.shared.symbols.kernels import Kernel
    from collectors.shared.symbols.process import resolver
    with torch.inference_mode():
        net(x); net(x)
        engine = Engine()
        engine.instrument()
        net(x)
        engine.edge()
        engine.uninstrument()
    log = Log.of(engine.memory)
    own = Known(*engine.own_code, Kernel(Domain.OWN, "hwprof", None))
    known = [own, *keep_perf_map(os.getpid(), Path(RAW))]
    numbers, kernels = resolver(os.getpid(), known).resolve(starts_of(log))
    first = np.cumsum([0, *(len(blocks) for blocks in log.blocks)])
    block = first[log.entries["context"]] + log.entries["block"].astype(np.int64)
    facts = np.concatenate([blocks["facts"] for blocks in log.blocks])
    instructions = log.entries["executions"].astype(np.int64) * facts[block, Fact.INSTRUCTIONS]
    by_kernel = np.bincount(numbers[block], instructions, len(kernels)).tolist()
    shares = {}
    for kernel, amount in zip(kernels, by_kernel):
        if kernel.domain is not Domain.OWN:
            whole, named = shares.get(kernel.library, (0, 0))
            shares[kernel.library] = (whole + amount, named + (amount if kernel.name else 0))
    end(shares=shares, names=[kernel.name for kernel in kernels if kernel.name])
        """.replace("RAW", repr(str(tmp_path)))
    )
    shares = {library: named / whole for library, (whole, named) in said["shares"].items() if whole}
    for library in ("libtorch_cpu.so", "jit", "libgomp.so.1", "libc10.so"):
        assert shares[library] > 0.99, shares
    assert "[unknown]" not in shares
    whole = sum(amount for amount, _ in said["shares"].values())
    named = sum(amount for _, amount in said["shares"].values())
    assert named / whole > 0.97, shares
    names = set(said["names"])
    assert any("conv" in name and name.startswith("jit_") for name in names)
    assert {"at::native::silu_kernel", "at::native::cpu_max_pool (parallel)"} <= names
    assert any(name.startswith("gomp_") for name in names)
