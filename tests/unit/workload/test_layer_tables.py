from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import torch
from torch import nn

from hwprof.run.manifest import WorkloadRecord
from hwprof.run.schema import TABLES
from hwprof.workload.layer_tables import layer_tables
from hwprof.workload.protocol import Call, Outputs, Stages, Workload


class Join(nn.Module):
    def forward(self, x: dict[str, Any]) -> list[torch.Tensor]:
        first, (second,) = x["pair"]
        return [torch.cat((first, second), dim=1), x["scale"] * first]


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.model = nn.ModuleList([nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(), Join()])
        self.twice = nn.Sequential(nn.Conv2d(8, 8, 1, bias=False))
        self.spare = nn.Sequential(nn.Linear(5, 7))

    def forward(self, x: torch.Tensor, *, scale: torch.Tensor) -> torch.Tensor:
        y = self.model[1](self.model[0](x))
        joined, _ = self.model[2]({"pair": (y, (y,)), "scale": scale})
        result: torch.Tensor = self.twice(self.twice(joined))
        return result


class Distances(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.cdist(x, y)


class _Twice(nn.Module):
    """Of one argument both."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.module(x, x)
        return result


class Calls:
    """A workload of nothing but model calls."""

    def __init__(self, module: nn.Module, arguments: list[tuple[Any, ...]]) -> None:
        self.modules: Mapping[str, nn.Module] = {"": module}
        self._calls = [Call(module, given) for given in arguments]

    shapes_suffice = False

    def prepare(self, *, values: bool = True) -> WorkloadRecord:
        raise NotImplementedError

    def iterate(self, stages: Stages, save_to: Path | None, outputs: Outputs | None = None) -> None:
        raise NotImplementedError

    def forwards(self) -> list[Call]:
        return self._calls

    def results(self) -> list[str]:
        return []

    def boxes(self) -> list[torch.Tensor] | None:
        return None


class _Positional(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = Net()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.net(x, scale=torch.ones(1))
        return result


@pytest.fixture
def workload() -> Workload:
    return Calls(_Positional(), [(torch.zeros(1, 3, 6, 10),), (torch.zeros(2, 3, 4, 4),)])


def _row(table: pl.DataFrame, path: str) -> dict[str, Any]:
    return table.row(by_predicate=pl.col("path") == path, named=True)


def test_has_the_tables_columns_and_every_module_in_execution_order(workload: Workload) -> None:
    table = layer_tables(workload)[0]
    assert table.schema == TABLES["layers"]
    assert table["path"].to_list() == [
        "",
        "net",
        "net.model.0",
        "net.model.1",
        "net.model.2",
        "net.twice",
        "net.twice.0",
        "net.model",  # never called, as its modules are called one by one
        "net.spare",
        "net.spare.0",
    ]
    assert table["order"].to_list() == list(range(10))
    assert table["calls"].to_list() == [2, 2, 2, 2, 2, 4, 4, 0, 0, 0]


def test_a_convolutions_arithmetic(workload: Workload) -> None:
    row = _row(layer_tables(workload)[0], "net.model.0")
    pixels = 1 * 6 * 10 + 2 * 4 * 4
    parameters = 4 * 3 * 3 * 3 + 4
    assert row == {
        "order": 2,
        "index": None,
        "path": "net.model.0",
        "type": "Conv2d",
        "leaf": True,
        "depth": 2,
        "parameters": parameters,
        "macs": pixels * 4 * 3 * 9,
        "own_macs": pixels * 4 * 3 * 9,
        "bytes": 4 * (pixels * 3 + pixels * 4 + 2 * parameters),
        "calls": 2,
        "input_shapes": "1x3x6x10",
        "output_shapes": "1x4x6x10",
        "more_shapes": 1,
        "convolution": "k3x3 s1x1 p1x1 d1x1 g1",
        "pooling": None,
        "input": 0,  # the model's own
        "product_type": "float32",
        "compiled": False,
        "denormal_share": None,
    }


@pytest.mark.parametrize(
    ("module", "geometry"),
    [
        (nn.Conv2d(4, 8, (1, 9), stride=(2, 1), padding=(0, 4), groups=2), "k1x9 s2x1 p0x4 d1x1 g2"),
        (nn.Conv2d(4, 4, 4, padding="same", dilation=3), "k4x4 s1x1 p4x4 d3x3 g1"),
        (nn.Conv2d(4, 4, 3, padding="valid"), "k3x3 s1x1 p0x0 d1x1 g1"),
        (nn.Conv2d(4, 4, 3, padding=1, padding_mode="circular"), "k3x3 s1x1 p1x1 d1x1 g1 circular"),
        (nn.ConvTranspose2d(4, 4, 3), None),
    ],
)
def test_a_convolutions_geometry_is_its_own(module: nn.Module, geometry: str | None) -> None:
    layers, _ = layer_tables(Calls(nn.Sequential(module), [(torch.zeros(1, 4, 20, 16),)]))
    assert _row(layers, "0")["convolution"] == geometry


@pytest.mark.parametrize(
    ("module", "geometry"),
    [
        (nn.MaxPool2d(5, 1, 2), "max k5x5 s1x1 p2x2 d1x1"),
        (nn.MaxPool2d((3, 2), padding=(1, 0)), "max k3x2 s3x2 p1x0 d1x1"),
        (nn.MaxPool2d(3, 1, dilation=2), "max k3x3 s1x1 p0x0 d2x2"),
        (nn.AvgPool2d(3), None),
    ],
)
def test_a_max_poolings_geometry_is_its_own(module: nn.Module, geometry: str | None) -> None:
    layers, _ = layer_tables(Calls(nn.Sequential(module), [(torch.zeros(1, 4, 20, 16),)]))
    assert _row(layers, "0")["pooling"] == geometry


class Pyramid(nn.Module):
    def __init__(self, *, in_place: bool = False) -> None:
        super().__init__()
        self.first, self.second, self.after = (nn.MaxPool2d(size, 1, size // 2) for size in (3, 5, 3))
        self.grown = nn.ReLU(inplace=in_place)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        first = self.first(x)
        self.grown(x)
        result: torch.Tensor = self.second(x) + self.after(first)
        return result


def test_layers_that_get_the_same_tensor_have_the_same_input() -> None:
    layers, _ = layer_tables(Calls(Pyramid(), [(torch.zeros(1, 4, 20, 16),)]))
    first, second, grown, after = (_row(layers, path)["input"] for path in ("first", "second", "grown", "after"))
    assert first == second == grown != after


class Attention(nn.Module):
    """Products beside those of its leaves, in an operator that torch does not count."""

    def __init__(self) -> None:
        super().__init__()
        self.project = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.project(x)
        return torch.cdist(y, y)


UNKNOWN = {
    "lstm": (nn.LSTM(8, 8), 10 * 4 * 8 * (8 + 8)),
    "distances": (_Twice(Distances()), None),
    "bilinear": (_Twice(nn.Bilinear(8, 8, 4)), None),
    "linear": (nn.Linear(8, 4), 10 * 8 * 4),
    "gru_cell": (nn.GRUCell(8, 4), 10 * 3 * 4 * (8 + 4)),
    "norm": (nn.LayerNorm(8), 0),
    "activation": (nn.GELU(), 0),
    "upsample": (nn.Upsample(scale_factor=2, mode="linear"), 0),
}


@pytest.mark.parametrize("name", UNKNOWN)
@pytest.mark.parametrize("shapes_suffice", [False, True])
def test_products_that_torch_does_not_count_are_not_known_and_none_are_0(name: str, shapes_suffice: bool) -> None:
    module, macs = UNKNOWN[name]
    x = torch.zeros(1, 10, 8) if name == "upsample" else torch.zeros(10, 8)
    workload = Calls(nn.Sequential(nn.Linear(8, 8), module, nn.Identity()), [(x,)])
    workload.shapes_suffice = shapes_suffice
    layers, calls = layer_tables(workload)
    linear = 10 * 8 * 8
    found = {row["path"]: row["macs"] for row in layers.filter("leaf").iter_rows(named=True)}
    assert [found[path] for path in ("0", "2")] == [linear, 0]
    own = layers.filter(pl.col("path").is_in(["1", "1.module"]))["macs"].to_list()
    assert set(own) == {macs}
    assert calls.filter(pl.col("path") == "1")["macs"].to_list() == [macs]


class _Around(nn.Module):
    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.inner(x)
        return result


class Threaded(nn.Module):
    """One of its two layers is called by a thread that the forward starts."""

    def __init__(self) -> None:
        super().__init__()
        self.here, self.there = nn.Linear(8, 4), nn.Sequential(nn.Linear(8, 16), nn.ReLU())
        self.weight = nn.Parameter(torch.zeros(2, 4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        helper = threading.Thread(target=self.there, args=(x,))
        helper.start()
        helper.join()
        return nn.functional.linear(self.here(x), self.weight)


def test_calls_on_other_threads_count_and_are_their_callers() -> None:
    layers, _ = layer_tables(Calls(nn.Sequential(Threaded()), [(torch.zeros(3, 8),)]))
    found = {path: (macs, own) for path, macs, own in layers.select("path", "macs", "own_macs").iter_rows()}
    here, there, own = 3 * 8 * 4, 3 * 8 * 16, 3 * 4 * 2
    assert found == {
        "": (here + there + own, 0),
        "0": (here + there + own, own),
        "0.here": (here, here),
        "0.there": (there, 0),
        "0.there.0": (there, there),
        "0.there.1": (0, 0),
    }


def test_products_beside_those_of_leaves_make_the_modules_around_unknown() -> None:
    layers, _ = layer_tables(Calls(nn.Sequential(nn.Sequential(Attention()), nn.Linear(4, 4)), [(torch.zeros(4, 8),)]))
    found = {path: (macs, own) for path, macs, own in layers.select("path", "macs", "own_macs").iter_rows()}
    project, last = 4 * 8 * 8, 4 * 4 * 4
    assert found == {
        "": (None, 0),
        "0": (None, 0),
        "0.0": (None, None),
        "0.0.project": (project, project),
        "1": (last, last),
    }


class Functional(nn.Module):
    """Products beside those of its leaves, which torch counts."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(16, 8))
        self.project = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.linear(self.project(x), self.weight)


def test_products_of_functions_are_their_modules_own() -> None:
    layers, _ = layer_tables(Calls(nn.Sequential(Functional(), nn.ReLU()), [(torch.zeros(4, 8),)]))
    found = {path: (macs, own) for path, macs, own in layers.select("path", "macs", "own_macs").iter_rows()}
    project, own = 4 * 8 * 8, 4 * 8 * 16
    assert found == {
        "": (project + own, 0),
        "0": (project + own, own),
        "0.project": (project, project),
        "1": (0, 0),
    }


class Again(nn.Module):
    """Multiplies, then calls itself."""

    def __init__(self, inner: nn.Module | None = None) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: torch.Tensor, times: int = 3) -> torch.Tensor:
        y = x @ x if self.inner is None else self.inner(x)
        again: torch.Tensor = self(y, times - 1) if times > 1 else y
        return again


@pytest.mark.parametrize("shapes_suffice", [False, True])
def test_a_module_that_calls_itself_has_the_work_of_its_outermost_calls(shapes_suffice: bool) -> None:
    model = nn.Sequential(Again(), Again(nn.Linear(4, 4, bias=False)))
    workload = Calls(model, [(torch.ones(4, 4),), (torch.ones(4, 4),)])
    workload.shapes_suffice = shapes_suffice
    layers, calls = layer_tables(workload)
    found = {row[0]: row[1:] for row in layers.select("path", "macs", "own_macs", "bytes", "calls").iter_rows()}
    product, tensor = 4 * 4 * 4, 4 * 4 * 4
    assert found == {
        "": (12 * product, 0, None, 2),
        "0": (6 * product, 6 * product, 2 * 2 * tensor, 6),
        "1": (6 * product, 0, None, 6),
        "1.inner": (6 * product, 6 * product, 6 * 3 * tensor, 6),
    }
    assert calls.filter(path="0", call=1)["macs"].item() == 2 * product


def test_inner_modules_have_the_sums_and_no_bytes(workload: Workload) -> None:
    table = layer_tables(workload)[0]
    whole, twice = _row(table, "net"), _row(table, "net.twice")
    pixels = 1 * 6 * 10 + 2 * 4 * 4
    assert (twice["macs"], twice["bytes"], twice["leaf"]) == (2 * pixels * 8 * 8, None, False)
    assert whole["macs"] == table.filter(pl.col("leaf"))["macs"].sum() == pixels * (4 * 27 + 2 * 64)
    assert whole["parameters"] == 112 + 64 + 42


def test_finds_tensors_in_nested_arguments(workload: Workload) -> None:
    row = _row(layer_tables(workload)[0], "net.model.2")
    assert (row["input_shapes"], row["output_shapes"]) == ("1x4x6x10 1x4x6x10 1", "1x8x6x10 1x4x6x10")
    assert row["macs"] == 0


def test_equal_calls_run_once_and_count_each() -> None:
    ran: list[int] = []

    class Counted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(4, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            ran.append(len(x))
            result: torch.Tensor = self.linear(x)
            return result

    shared, other = torch.zeros(3, 4), torch.zeros(1, 4)
    row = _row(layer_tables(Calls(Counted(), [(shared,), (other,), (shared,), (shared,)]))[0], "linear")
    assert ran == [3, 1]
    assert (row["calls"], row["macs"], row["more_shapes"]) == (4, (3 * 3 + 1) * 8, 1)
    assert row["bytes"] == 4 * ((3 * 3 + 1) * (4 + 2) + 4 * 10)


def test_each_call_has_its_own_shapes_and_macs_in_the_iteration_s_order() -> None:
    shared, other = torch.zeros(3, 4), torch.zeros(1, 4)
    layers, calls = layer_tables(Calls(nn.Sequential(nn.Linear(4, 2)), [(shared,), (other,), (shared,)]))
    assert calls.schema == TABLES["layer_calls"]
    calls = calls.filter(path="0")
    assert calls.select("call", "macs").rows() == [(0, 24), (1, 8), (2, 24)]
    assert calls["input_shapes"].n_unique() == 2
    row = _row(layers, "0")
    assert (calls["macs"].sum(), calls["bytes"].sum()) == (row["macs"], row["bytes"])


def test_element_sizes_are_the_real_ones() -> None:
    model = nn.Sequential(nn.Linear(4, 2).double())
    row = _row(layer_tables(Calls(model, [(torch.zeros(3, 4, dtype=torch.float64),)]))[0], "0")
    assert row["bytes"] == 8 * (12 + 6 + 10)


def test_attention_on_cpus_counts() -> None:
    class Attention(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return nn.functional.scaled_dot_product_attention(x, x, x)

    row = _row(layer_tables(Calls(nn.Sequential(Attention()), [(torch.rand(2, 3, 16, 8),)]))[0], "0")
    assert row["macs"] == 2 * (2 * 3 * 16 * 16 * 8)


class PlainTensor(nn.Module):
    """Multiplies with what is no parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.ones(4, 8, dtype=torch.int8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ self.weight.t().to(x.dtype)


class Positions(nn.Module):
    """Adds what is no parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("table", torch.ones(100, 8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.get_buffer("table")[: len(x)]


@pytest.mark.filterwarnings("ignore")
def test_bytes_of_a_quantised_layer_have_its_weights_in_them() -> None:
    quantize: Any = torch.ao.quantization.quantize_dynamic
    model = quantize(nn.Sequential(nn.Linear(16, 8), nn.ReLU()).eval(), {nn.Linear})
    table, calls = layer_tables(Calls(model, [(torch.zeros(4, 16),)] * 2))
    row = _row(table, "0")
    once = 4 * 4 * (16 + 8) + 16 * 8 + 4 * 8
    assert (row["type"], row["parameters"], row["bytes"]) == ("DynamicQuantizedLinear", 16 * 8 + 8, 2 * once)
    assert calls.filter(path="0")["bytes"].to_list() == [once, once]
    assert _row(table, "")["parameters"] == 16 * 8 + 8


def test_tensors_that_a_layer_multiplies_with_are_its_weights() -> None:
    table, _ = layer_tables(Calls(nn.Sequential(Positions(), PlainTensor()), [(torch.zeros(3, 8),)]))
    rows = table.select("path", "parameters", "bytes").rows()
    assert rows == [("", 32, None), ("0", 0, 4 * 2 * 24), ("1", 32, 4 * (24 + 12) + 32)]


def test_of_a_table_only_the_rows_that_are_looked_up_are_read() -> None:
    rows, size = 10_000, 32
    looked_up = torch.zeros(2, 3, dtype=torch.int64)
    for module, out in ((nn.Embedding(rows, size), 6 * size), (nn.EmbeddingBag(rows, size), 2 * size)):
        table, _ = layer_tables(Calls(nn.Sequential(module), [(looked_up,)]))
        assert _row(table, "0")["bytes"] == 8 * 6 + 4 * out + 4 * 6 * size, type(module)


def test_indices_of_four_bytes_and_offsets_of_bags_are_rows_no_more() -> None:
    size = 32
    indices, offsets = torch.zeros(6, dtype=torch.int32), torch.tensor([0, 4], dtype=torch.int32)
    table, _ = layer_tables(Calls(nn.EmbeddingBag(10_000, size), [(indices, offsets)]))
    assert _row(table, "EmbeddingBag")["bytes"] == 4 * (6 + 2) + 4 * 2 * size + 4 * 6 * size


def test_weights_that_cannot_be_read_are_no_figures() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    model.get_submodule("1").packed = torch.classes.profiling._ScriptProfile()
    table, calls = layer_tables(Calls(model, [(torch.zeros(1, 4),)]))
    rows = table.select("path", "parameters", "bytes").rows()
    assert rows == [("", None, None), ("0", 20, 4 * (4 + 4 + 20)), ("1", None, None)]
    assert calls.filter(path="1")["bytes"].to_list() == [None]


class Blocks(nn.Module):
    """No list, but blocks that are."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Sequential(nn.ReLU(), nn.ReLU()), nn.Sequential(nn.ReLU())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.second(self.first(x))
        return result


def test_only_a_model_that_is_one_list_has_numbers() -> None:
    def numbers(model: nn.Module) -> dict[str, int | None]:
        table, _ = layer_tables(Calls(model, [(torch.zeros(1, 4),)]))
        return dict(table.filter("leaf").select("path", "index").iter_rows())

    assert numbers(Blocks()) == {"first.0": None, "first.1": None, "second.0": None}
    assert numbers(nn.Sequential(nn.ReLU(), Blocks())) == {"0": 0, "1.first.0": 1, "1.first.1": 1, "1.second.0": 1}
    assert numbers(_Around(nn.Sequential(nn.ReLU(), nn.ReLU()))) == {"inner.0": 0, "inner.1": 1}


def test_leaves_nothing_behind(workload: Workload) -> None:
    modules = list(workload.modules[""].modules())
    before = [{key: value for key, value in vars(module).items() if "hook" not in key} for module in modules]
    layer_tables(workload)[0]
    for module, kept in zip(modules, before, strict=True):
        assert not [key for key, value in vars(module).items() if "hook" in key and value]
        assert {key: value for key, value in vars(module).items() if "hook" not in key} == kept


def test_leaves_nothing_behind_when_the_model_fails() -> None:
    model = nn.Sequential(nn.Linear(4, 2), nn.Linear(3, 1))
    with pytest.raises(RuntimeError):
        layer_tables(Calls(model, [(torch.zeros(1, 4),)]))[0]
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())
    assert model[0](torch.zeros(1, 4)).shape == (1, 2)


def test_a_model_of_one_module_is_its_own_layer() -> None:
    table = layer_tables(Calls(nn.Linear(4, 2), [(torch.zeros(1, 4),)]))[0]
    assert table.select("path", "index", "macs").rows() == [("Linear", None, 8)]


def test_a_number_may_first_be_found_far_down() -> None:
    """Of 150 modules without an index the 151st has one: no column's type hangs on the rows before."""
    model: nn.Module = nn.Sequential(nn.Linear(4, 4))
    for _ in range(150):
        model = _Around(model)
    layers, _ = layer_tables(Calls(model, [(torch.zeros(1, 4),)]))
    assert layers.schema == TABLES["layers"]
    assert layers.height == 152 and layers["index"].drop_nulls().to_list() == [0]


class Forks(nn.Module):
    """Comes back in both processes; the first waits for the other one."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        child = os.fork()
        if child:
            assert os.waitpid(child, 0)[1] == 0
        return x + 1


def test_a_copy_of_the_process_ends_with_the_models_call() -> None:
    """It would go on beside the first one, or wait for locks that nobody in it will free."""
    layers, _ = layer_tables(Calls(Forks(), [(torch.zeros(2),)]))
    assert layers["calls"].to_list() == [1]


def test_what_is_multiplied_is_told_after_autocast_and_of_every_type() -> None:
    class Cast(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second, self.idle = nn.Linear(8, 8), nn.Linear(8, 8).double(), nn.ReLU()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            with torch.autocast("cpu", dtype=torch.bfloat16):
                found = self.first(x)
            return torch.relu(self.second(found.double()))

    rows, _ = layer_tables(Calls(nn.Sequential(Cast()), [(torch.rand(2, 8),)]))
    types = dict(rows.select("path", "product_type").iter_rows())
    assert types["0.first"] == "bfloat16" and types["0.second"] == "float64" and types["0.idle"] is None
    assert types["0"] == "bfloat16, float64"
