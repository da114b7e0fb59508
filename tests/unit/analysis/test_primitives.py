"""Primitives and the layer calls they lie in; which implementations are fallbacks."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwprof.analysis.implementations import Verdict, fallback, knowledge, vector_bits
from hwprof.analysis.primitives import analyse, locate
from hwprof.run.schema import TABLES
from tests.support import small_tables

AVX512 = ["avx", "avx2", "avx512f", "avx512bw", "avx512dq", "avx512vl", "sse4_1"]
ERROR_NS = 10


def primitives(rows: Sequence[tuple[int | None, int, str, str]]) -> pl.DataFrame:
    """(begin, time, primitive, implementation), in this order."""
    return pl.DataFrame(
        [
            {
                "pass": "trace",
                "order": order,
                "begin_ns": begin,
                "time_ns": time,
                "primitive": primitive,
                "implementation": implementation,
                "data_types": "src:f32 dst:f32",
                "layouts": "src:abcd dst:abcd",
                "problem": f"problem {order}",
            }
            for order, (begin, time, primitive, implementation) in enumerate(rows)
        ],
        schema=TABLES["primitives"],
    )


def layers(paths: Sequence[str]) -> pl.DataFrame:
    rows = [{"order": number, "path": path, "type": "Conv2d", "leaf": True} for number, path in enumerate(paths)]
    return pl.DataFrame(rows, schema=TABLES["layers"])


SPANS = small_tables.spans(
    [
        (0, None, 3, "iteration", "iteration 3", 0, 10_000),
        (1, 0, 3, "layer", "model", 500, 9_000),
        (2, 1, 3, "layer", "model.a", 1_000, 3_000),
        (3, 1, 3, "layer", "model.b", 3_000, 4_000),
        (4, 1, 3, "layer", "model.a", 5_000, 7_000),
        (5, 1, 3, "layer", "model.c", 7_500, 8_000),
        (6, None, 1, "iteration", "iteration 1", -9_000, -5_000),
        (7, 6, 1, "layer", "model.a", -8_000, -6_000),
    ]
).with_columns(call=pl.when(pl.col("span") == 4).then(1).otherwise(0).cast(pl.Int32))
LEAVES = ["model.a", "model.b", "model.c"]


def test_each_layers_implementations_with_their_share_of_its_time() -> None:
    found = analyse(
        primitives(
            [
                (1_100, 400, "reorder", "jit:uni"),
                (1_600, 1_000, "convolution", "jit:avx512_core"),
                (3_100, 800, "convolution", "ref:any"),
                (5_100, 1_600, "convolution", "jit:avx512_core"),
            ]
        ),
        SPANS,
        layers(LEAVES),
        ERROR_NS,
        AVX512,
    )
    assert found.by_layer.select("path", "implementation", "executions", "time_ns", "share", "fallback").rows() == [
        ("model.a", "jit:avx512_core", 2, 2_600, 0.65, None),  # of both calls in iteration 3, not of iteration 1
        ("model.a", "jit:uni", 1, 400, 0.1, None),
        ("model.b", "ref:any", 1, 800, 0.8, "reference"),
    ]
    assert found.by_layer["problem"][0] == "problem 3"
    assert found.without.select("path", "type", "calls", "time_ns").rows() == [("model.c", "Conv2d", 1, 500)]
    assert "im2col" in found.without["reason"][0]
    assert found.warnings["path"].to_list() == ["model.b"]
    assert found.not_joined() == {}
    assert found.margin_ns == 100
    assert found.calls.select("iteration", "span", "call").rows() == [(3, 2, 0), (3, 2, 0), (3, 3, 0), (3, 4, 1)]


def test_what_cannot_be_joined_is_counted_by_reason() -> None:
    found = analyse(
        primitives(
            [
                (None, 5, "sum", "jit"),
                (4_500, 100, "sum", "jit"),
                (2_500, 700, "sum", "jit"),  # ends in the next layer
                (3_005, 100, "sum", "jit"),  # began within the clock's error of the edge
                (5_100, 100, "sum", "jit"),
            ]
        ),
        SPANS,
        layers(LEAVES),
        ERROR_NS,
        AVX512,
    )
    assert found.not_joined() == {"no time": 1, "outside layers": 1, "across an edge": 2}
    assert found.calls["path"].to_list() == [None, None, None, None, "model.a"]
    assert found.margin_ns == 100


@pytest.mark.parametrize(
    ("begin", "time", "why_not"),
    [
        (1_000 + ERROR_NS, 100, "across an edge"),
        (1_001 + ERROR_NS, 100, None),
        (2_900 - ERROR_NS, 100, "across an edge"),
        (2_899 - ERROR_NS, 100, None),
        (999, 100, "outside layers"),
        (3_000, 100, "several layers"),
        (4_000, 100, "across an edge"),
        (4_001, 100, "outside layers"),
    ],
)
def test_at_the_edges_of_layers(begin: int, time: int, why_not: str | None) -> None:
    """From 1000 to 3000 and from 3000 to 4000, both ends included: the clock is not that good."""
    found = analyse(primitives([(begin, time, "sum", "jit")]), SPANS, layers(LEAVES), ERROR_NS, AVX512)
    assert found.not_joined() == ({why_not: 1} if why_not else {})


@pytest.mark.parametrize(("begin", "found"), [(12, "several layers"), (50, "several layers"), (150, "outside layers")])
def test_beside_a_layer_within_another_nobody_is_chosen(begin: int, found: str) -> None:
    leaves = small_tables.spans([(0, None, 0, "layer", "long", 0, 100), (1, None, 0, "layer", "short", 10, 20)])
    leaves = leaves.with_columns(call=pl.lit(0, dtype=pl.Int32))
    assert locate(primitives([(begin, 1, "sum", "jit")]), leaves, 1)["why_not"].to_list() == [found]


def test_of_two_iterations_the_one_that_took_less_tells_the_shares() -> None:
    rows = primitives([(1_100, 400, "sum", "jit"), (-7_900, 500, "sum", "jit")])
    found = analyse(rows, SPANS, layers(["model.a"]), ERROR_NS, AVX512)
    assert found.by_layer.select("time_ns", "share").rows() == [(500, 0.25)]


def test_no_primitive_at_all() -> None:
    found = analyse(primitives([]), SPANS, layers(LEAVES), ERROR_NS, AVX512)
    assert (found.by_layer.height, found.margin_ns, found.not_joined()) == (0, None, {})
    assert found.without.select("path", "calls").rows() == [("model.a", 2), ("model.b", 1), ("model.c", 1)]


@pytest.mark.parametrize("kind", ["Linear", "Conv2d", "LSTM", "ConvTranspose2d"])
def test_reasons_of_bypasses_are_true_of_every_data_type(kind: str) -> None:
    """Nobody knows a layer's data type: where a reason speaks of float32, it speaks of the others too."""
    (bypass,) = [one for one in knowledge().bypass if kind in one.types]
    assert "float32" not in bypass.reason or "data type" in bypass.reason or "float64" in bypass.reason


def test_a_quantised_layer_has_another_reason_than_the_float_one() -> None:
    """Each type has one, and these are none of the BLAS."""
    types = [kind for bypass in knowledge().bypass for kind in bypass.types]
    assert len(types) == len(set(types))
    reasons = {kind: bypass.reason for bypass in knowledge().bypass for kind in bypass.types}
    assert "BLAS" in reasons["Linear"]
    for kind in ("DynamicQuantizedLinear", "QuantizedLinear", "QuantizedConv2d", "DynamicQuantizedLSTM"):
        assert "FBGEMM" in reasons[kind] and "BLAS" not in reasons[kind]


def test_a_layer_may_bypass_onednn_in_some_calls_only() -> None:
    found = analyse(primitives([(5_100, 100, "sum", "jit")]), SPANS, layers(["model.a"]), ERROR_NS, AVX512)
    assert found.without.select("path", "calls", "time_ns").rows() == [("model.a", 1, 2_000)]
    assert found.by_layer.select("path", "share").rows() == [("model.a", 0.025)]


def owner(begin: int, time: int, spans: Sequence[tuple[int, int]]) -> tuple[int | None, str | None]:
    """The same by looking at every span: (number of the span, why not)."""
    around = [number for number, (low, high) in enumerate(spans) if low <= begin <= high]
    if not around:
        return None, "outside layers"
    if len(around) > 1:
        return None, "several layers"
    low, high = spans[around[0]]
    inside = min(begin - low, high - begin - time) > ERROR_NS
    return (around[0], None) if inside else (None, "across an edge")


INTERVALS = st.lists(st.tuples(st.integers(0, 300), st.integers(0, 120)), max_size=8).map(
    lambda pairs: sorted((begin, begin + length) for begin, length in pairs)
)


@given(INTERVALS, st.lists(st.tuples(st.integers(0, 400), st.integers(0, 60)), max_size=20))
def test_joined_as_by_looking_at_every_span(spans: list[tuple[int, int]], executed: list[tuple[int, int]]) -> None:
    leaves = small_tables.spans([(n, None, 0, "layer", f"l{n}", low, high) for n, (low, high) in enumerate(spans)])
    leaves = leaves.with_columns(call=pl.lit(0, dtype=pl.Int32))
    rows = primitives([(begin, time, "sum", "jit") for begin, time in executed])
    located = locate(rows, leaves, ERROR_NS)
    assert located["order"].to_list() == list(range(len(executed)))
    overlapping = any(low <= end for (_, end), (low, _) in pairwise(spans))
    for (span, why), (begin, time) in zip(located.select("span", "why_not").rows(), executed, strict=True):
        expected = owner(begin, time, spans)
        assert (span is None) != (why is None)
        if span is not None or not overlapping:
            assert (span, why) == expected


@given(st.lists(st.integers(1, 200), min_size=2, max_size=12), st.data())
def test_in_layers_that_do_not_overlap_every_primitive_well_inside_is_joined(
    lengths: list[int], data: st.DataObject
) -> None:
    edges = [sum(lengths[:n]) for n in range(len(lengths) + 1)]
    spans = list(pairwise(edges))
    leaves = small_tables.spans([(n, None, 0, "layer", f"l{n}", low, high) for n, (low, high) in enumerate(spans)])
    leaves = leaves.with_columns(call=pl.lit(0, dtype=pl.Int32))
    wide = [n for n, length in enumerate(lengths) if length > 2 * ERROR_NS + 2]
    chosen = data.draw(st.lists(st.sampled_from(wide), max_size=10)) if wide else []
    rows = primitives([(spans[n][0] + ERROR_NS + 1, lengths[n] - 2 * ERROR_NS - 2, "sum", "jit") for n in chosen])
    assert locate(rows, leaves, ERROR_NS)["span"].to_list() == chosen


@pytest.mark.parametrize(
    ("primitive", "implementation", "kind"),
    [
        ("convolution", "ref:any", "reference"),
        ("convolution", "ref_int8:any", "reference"),
        ("rnn", "ref", "reference"),
        ("matmul", "gemm:ref", "reference"),
        ("deconvolution", "conv:any+ref:any", "reference"),
        ("pooling", "simple_nchw:any", "plain"),
        ("batch_normalization", "ncsp_bnorm:any", "plain"),
        ("convolution", "x64:gemm:jit", "generic"),
        ("convolution", "x64:gemm_s8u8s32:jit", "generic"),
        ("deconvolution", "conv:any+x64:gemm:jit", "generic"),
        ("matmul", "x64:gemm:jit", None),  # a matrix product is one
        ("convolution", "jit:avx2", "narrow"),
        ("convolution", "jit_dw:sse41", "narrow"),
        ("convolution", "jit:avx512_core", None),
        ("convolution", "brgconv:avx512_core_amx", None),
        ("reorder", "jit:uni", None),
        ("reorder", "jit:blk", None),
    ],
)
def test_what_a_name_means_on_a_processor_with_avx512(primitive: str, implementation: str, kind: str | None) -> None:
    found = fallback(primitive, implementation, AVX512)
    assert found.kind == kind
    assert (found.reason is None) == (kind is None)


def test_avx2_is_not_narrow_where_there_is_no_more() -> None:
    assert vector_bits(["sse4_1", "avx", "avx2"]) == 256
    assert fallback("convolution", "jit:avx2", ["sse4_1", "avx", "avx2"]) == Verdict()
    assert fallback("convolution", "jit:avx2", []) == Verdict()
    reason = "its vectors have 256 bits, the processor's 512"
    assert fallback("convolution", "jit:avx2", AVX512) == Verdict("narrow", reason)


def test_what_the_user_forbade_onednn_is_the_remedy() -> None:
    found = fallback("convolution", "jit:avx2", AVX512, "ONEDNN_MAX_CPU_ISA=AVX2")
    assert found.remedy == "ONEDNN_MAX_CPU_ISA=AVX2 is set: unset it"
    assert fallback("convolution", "jit:avx512_core", AVX512, "ONEDNN_MAX_CPU_ISA=AVX512_CORE") == Verdict()


def with_layouts(rows: Sequence[tuple[int, str, str]]) -> pl.DataFrame:
    """(begin, primitive, layouts), 10 ns each."""
    made = primitives([(begin, 10, primitive, "jit:uni") for begin, primitive, _ in rows])
    return made.with_columns(pl.Series("layouts", [layouts for _, _, layouts in rows]))


CONVOLUTION = "src:aBcd16b wei:ABcd16b16a dst:aBcd16b"


@pytest.mark.parametrize(
    "rows",
    [
        [("src:abcd dst:aBcd16b", "input"), (CONVOLUTION, None), ("src:aBcd16b dst:abcd", "output")],
        [("src:abcd dst:ABcd16b16a", "weights"), (CONVOLUTION, None)],
        # the second convolution's input, though it is in the layout that the first one wrote
        [(CONVOLUTION, None), ("src:aBcd16b dst:acdb", "input"), ("src:acdb wei:Acdb16a dst:acdb", None)],
        [("src:abcd dst:acdb", None), ("src:acdb wei:acdb dst:acdb", None)],  # its weights' layout and its input's
        [("src:abcd dst:acdb", None)],
    ],
)
def test_what_a_reorder_was_for(rows: list[tuple[str, str | None]]) -> None:
    made = with_layouts(
        [
            (1_100 + 100 * number, "convolution" if "wei:" in layouts else "reorder", layouts)
            for number, (layouts, _) in enumerate(rows)
        ]
    )
    found = analyse(made, SPANS, layers(LEAVES), ERROR_NS, AVX512)
    assert found.calls["tensor"].to_list() == [tensor for _, tensor in rows]


def test_reorders_of_different_tensors_are_not_mixed() -> None:
    made = with_layouts(
        [
            (1_100, "reorder", "src:abcd dst:aBcd16b"),
            (1_200, "convolution", "src:aBcd16b wei:ABcd16b16a dst:aBcd16b"),
            (5_100, "reorder", "src:abcd dst:aBcd16b"),
        ]
    )
    found = analyse(made, SPANS, layers(LEAVES), ERROR_NS, AVX512)
    rows = found.by_layer.filter(pl.col("primitive") == "reorder").select("tensor", "executions").rows()
    assert sorted(rows, key=str) == [("input", 1), (None, 1)]
    assert found.whole_ns == 10_000


def test_times_are_of_the_iteration_in_which_the_layer_took_its_median() -> None:
    """It took 2000, 2500 and 2200 ns: the third's parts, though its first primitive was never faster."""
    ends = (3_000, 13_500, 23_200)
    spans = small_tables.spans(
        [
            row
            for number, end in enumerate(ends)
            for row in [
                (2 * number, None, number, "iteration", f"iteration {number}", 10_000 * number, end + 500),
                (2 * number + 1, 2 * number, number, "layer", "model.a", 10_000 * number + 1_000, end),
            ]
        ]
    ).with_columns(call=pl.lit(0, dtype=pl.Int32))
    times = [(600, 700), (600, 800), (500, 900)]
    made = primitives(
        [
            (10_000 * number + 1_100 + 700 * place, time, primitive, "jit")
            for number, pair in enumerate(times)
            for place, (primitive, time) in enumerate(zip(("reorder", "convolution"), pair, strict=True))
        ]
    )
    found = analyse(made, spans, layers(["model.a"]), ERROR_NS, AVX512)
    assert found.iterations == 3
    assert found.whole_ns == 3_700, "3500, 4000 and 3700"
    assert found.by_layer.select("primitive", "executions", "time_ns", "share").rows() == [
        ("convolution", 1, 900, 900 / 2_200),
        ("reorder", 1, 500, 500 / 2_200),
    ]
    assert found.calls.height == 6
    assert found.without.is_empty()
