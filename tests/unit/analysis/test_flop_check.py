"""Counted FLOPs against analytic ones, and what shapes tell of a convolution."""

from __future__ import annotations

import math

import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hwprof.analysis.convolutions import VECTOR_CHANNELS, convolution, inside_share, of_geometry
from hwprof.analysis.flop_check import AGREES, Rule, check, flop_checks, rules, shape_figures
from hwprof.analysis.layers import Figures
from hwprof.analysis.owners import UNATTRIBUTED, WHOLE

CONV = {
    "kernel": 3.0, "stride": 1.0, "groups": 1.0, "dilation": 1.0, "dimensions": 2.0, "inside": 0.93, "rounding": 1.0,
    "elements": 1000.0,
}  # fmt: skip
PLAIN = {"running_share": 1.0, "speculative": 0.0, "instrumented": 0.0}


def verdict(ratio: float, **figures: float) -> str:
    return check(ratio * 2e6, 1_000_000, PLAIN | figures).verdict


@pytest.mark.parametrize(
    ("ratio", "figures", "expected"),
    [
        (1.0, {}, AGREES),
        (0.96, CONV, AGREES),
        (0.93, CONV, "padding"),
        (0.44, CONV, "winograd"),
        (0.44, CONV | {"stride": 2.0}, "fewer"),
        (0.44, CONV | {"kernel": 1.0}, "fewer"),
        (0.44, CONV | {"groups": 64.0}, "fewer"),
        (0.44, CONV | {"dilation": 8.0}, "fewer"),
        (0.44, CONV | {"dimensions": 3.0}, "fewer"),
        (0.44, CONV | {"running_share": 0.5}, "multiplexed"),
        (0.98, CONV | {"running_share": 0.5}, AGREES),
        (0.01, {"amx_busy": 40.0}, "amx"),
        (0.01, {"amx_busy": 0.0}, "uncounted"),
        (0.0, {"instrumented": 1.0}, "no_floats"),
        (0.0, {"instrumented": 1.0, "vnni_share": 60.0}, "integer"),
        (0.3, {"vnni_share": 60.0}, "integer"),
        (0.03, {"instrumented": 1.0, "integer_operations": 2e6}, "integer_products"),
        (0.0, {"instrumented": 1.0, "integer_operations": 2e6}, "integer_products"),
        (0.03, {"instrumented": 1.0, "integer_operations": 1e6}, "fewer"),
        (0.0, {"instrumented": 1.0, "integer_operations": 0.0}, "no_floats"),
        (1.14, {"recurrent": 1.0}, "gates"),
        (1.14, {"recurrent": 0.0}, "more"),
        (9.0, {"recurrent": 1.0}, "more"),
        (0.6, {}, "fewer"),
        (1.07, CONV | {"rounding": 1.07}, "rounding"),
        (1.5, CONV | {"elements": 1e6}, "beside"),
        (1.2, {"speculative": 1.0}, "speculative"),
        (1.2, {}, "more"),
        (2.0, {"speculative": 1.0}, "more"),
    ],
)
def test_reasons(ratio: float, figures: dict[str, float], expected: str) -> None:
    assert verdict(ratio, **figures) == expected


@pytest.mark.parametrize("bound", rules().agreement)
def test_the_bounds_of_agreement_agree_themselves(bound: float) -> None:
    counted = round(100 * bound)
    assert counted / 100 == bound
    assert check(counted, 50, PLAIN).verdict == AGREES


@pytest.mark.parametrize("rule", [rule for rule in rules().rule if rule.when], ids=lambda rule: rule.name)
def test_the_bounds_of_a_rule_belong_to_it(rule: Rule) -> None:
    for end, beyond in ((0, -math.inf), (1, math.inf)):
        figures = {name: bounds[end] for name, bounds in rule.when.items()}
        assert rule.holds(figures)
        for name, value in figures.items():
            assert rule.holds(figures | {name: math.nextafter(value, beyond)}) == (abs(value) == math.inf)


def test_work_without_macs_has_nothing_to_be_compared_with() -> None:
    found = check(5000.0, 0, PLAIN)
    assert (found.ratio, found.verdict, found.expected, found.analytic) == (None, "no_macs", True, 0.0)


def test_reasons_hold_the_figures() -> None:
    assert "7.0%" in (check(0.93 * 2e6, 10**6, PLAIN | CONV).reason or "")
    assert "41%" in (check(1e4, 10**6, PLAIN | {"amx_busy": 41.3}).reason or "")


Known = st.fixed_dictionaries(
    {
        "running_share": st.floats(0, 1),
        "speculative": st.sampled_from([0.0, 1.0]),
        "instrumented": st.sampled_from([0.0, 1.0]),
    },
    optional={
        "kernel": st.sampled_from([1.0, 3.0, 5.0]),
        "stride": st.sampled_from([1.0, 2.0]),
        "groups": st.sampled_from([1.0, 64.0]),
        "inside": st.floats(0, 1),
        "rounding": st.floats(1, 16),
        "elements": st.floats(1, 1e9),
        "amx_busy": st.floats(0, 100),
        "vnni_share": st.floats(0, 100),
        "integer_operations": st.floats(0, 1e15),
        "recurrent": st.sampled_from([0.0, 1.0]),
    },
)


@given(st.floats(0, 1e15), st.integers(0, 10**15), Known)
def test_every_figure_has_a_verdict_and_agreement_is_the_ratio_s_alone(
    counted: float, macs: int, known: dict[str, float]
) -> None:
    found = check(counted, macs, known)
    low, high = rules().agreement
    assert (found.ratio is None) == (macs == 0)
    assert (found.verdict == AGREES) == (found.ratio is not None and low <= found.ratio <= high)
    assert (found.reason is None) == (found.verdict == AGREES)
    assert found.reason is None or "{" not in found.reason
    assert check(counted, macs, dict(known)) == found


@given(st.floats(0, 1e12), st.integers(1, 10**12), Known, st.sampled_from([2, 16, 1024]))
def test_only_the_ratio_counts_where_no_size_is_known(
    counted: float, macs: int, known: dict[str, float], factor: int
) -> None:
    for name in ("elements", "integer_operations"):
        known.pop(name, None)
    assert check(factor * counted, factor * macs, known).verdict == check(counted, macs, known).verdict


def test_rules_name_figures_that_are_explained_and_have_distinct_names() -> None:
    names = [rule.name for rule in rules().rule]
    assert len(set(names)) == len(names) and AGREES not in names
    for rule in rules().rule:
        assert all(low <= high for low, high in rule.when.values()), rule.name


@given(
    length=st.integers(1, 40),
    kernel=st.integers(1, 7),
    stride=st.integers(1, 3),
    padding=st.integers(0, 6),
)
def test_the_share_inside_is_what_walking_over_the_input_finds(
    length: int, kernel: int, stride: int, padding: int
) -> None:
    made = (length + 2 * padding - kernel) // stride + 1
    assume(made > 0 and padding < kernel)
    inside = sum(0 <= place * stride - padding + tap < length for place in range(made) for tap in range(kernel))
    assert math.isclose(inside_share(length, made, kernel, stride, padding), inside / (made * kernel))


@given(
    channels=st.integers(1, 64),
    made=st.integers(1, 64),
    size=st.tuples(st.integers(3, 60), st.integers(3, 60)),
    kernel=st.sampled_from([1, 3, 5, 7]),
    stride=st.integers(1, 2),
)
def test_a_usual_convolution_is_recognised(
    channels: int, made: int, size: tuple[int, int], kernel: int, stride: int
) -> None:
    out = [(length + 2 * (kernel // 2) - kernel) // stride + 1 for length in size]
    macs = 2 * made * math.prod(out) * channels * kernel**2
    found = convolution(f"2x{channels}x{size[0]}x{size[1]}", f"2x{made}x{out[0]}x{out[1]}", macs)
    assert found is not None
    assert (found.kernel, found.groups, found.padding) == (kernel, 1, kernel // 2)
    assert found.stride == stride
    assert 1 <= found.rounding <= VECTOR_CHANNELS
    assert 0 < found.inside <= 1


def test_depthwise_and_unknown_convolutions() -> None:
    depthwise = convolution("1x32x10x10", "1x32x10x10", 32 * 100 * 9)
    assert depthwise is not None and (depthwise.kernel, depthwise.groups) == (3, 32)
    assert depthwise.inside == pytest.approx((28 / 30) ** 2)
    assert convolution("1x3x10x10", "1x4x10x10", 4 * 100 * 7) is None
    assert convolution("1x3x10", "1x4x10", 120) is None
    assert convolution(None, None, 1) is None


@pytest.mark.parametrize(
    ("geometry", "given_shape", "made_shape", "outside"),
    [
        ("k3x3 s1x1 p1x1 d1x1 g1", "1x8x32x32", "1x8x32x32", 1 - (94 / 96) ** 2),
        ("k3x3 s1x1 p2x2 d2x2 g1", "1x8x32x32", "1x8x32x32", 1 - (92 / 96) ** 2),
        ("k1x9 s1x1 p0x4 d1x1 g1", "1x8x32x32", "1x8x32x32", 20 / (32 * 9)),
        ("k3x3 s1x1 p8x8 d8x8 g2", "8x32x32", "8x32x32", 1 - (80 / 96) ** 2),
        ("k3 s1 p1 d1 g1", "1x8x32", "1x8x32", 2 / 96),
        ("k3x3 s1x1 p1x1 d1x1 g1 circular", "1x8x32x32", "1x8x32x32", 0),
    ],
)
def test_what_of_a_known_convolution_lies_in_the_padding(
    geometry: str, given_shape: str, made_shape: str, outside: float
) -> None:
    found = of_geometry(geometry, given_shape, made_shape)
    assert found is not None
    assert 1 - found.inside == pytest.approx(outside)
    assert found.rounding == 2


def test_geometry_and_shapes_that_do_not_belong_together_tell_nothing() -> None:
    assert of_geometry("k3 s1 p1 d1 g1", "1x8x32x32", "1x8x32x32") is None
    assert of_geometry("k3x3 s1x1 p1x1 d1x1 g1", "1x8x32x32", None) is None
    assert of_geometry("3x3", "1x8x32x32", "1x8x32x32") is None


def test_a_convolutions_figures_are_of_its_own_geometry() -> None:
    dilated = shape_figures("Conv2d", [CALL], "k3x3 s1x1 p4x4 d4x4 g1")
    assert (dilated["kernel"], dilated["dilation"], dilated["dimensions"]) == (3, 4, 2)
    assert dilated["inside"] == pytest.approx((22 / 30) ** 2)
    assert "kernel" not in shape_figures("Conv2d", [CALL], "k1x9 s1x1 p0x4 d1x1 g1")


MACS = 20 * 100 * 16 * 9
CALL = {"input_shapes": "1x16x10x10", "output_shapes": "1x20x10x10", "macs": MACS}


def row(**changes: object) -> dict[str, object]:
    return {"owner": "a", "type": "Conv2d", "macs": MACS} | changes


def calls(*paths: str) -> pl.DataFrame:
    return pl.DataFrame([{"path": path} | CALL for path in paths])


def test_shapes_of_calls_tell_elements_and_geometry() -> None:
    once = shape_figures("Conv2d", [CALL])
    assert (once["kernel"], once["stride"], once["groups"], once["elements"]) == (3, 1, 1, 2000)
    assert once["rounding"] == pytest.approx(32 / 20)
    assert once["inside"] == pytest.approx((28 / 30) ** 2)
    assert shape_figures("SiLU", [CALL]) == {"elements": 2000}
    assert shape_figures("Conv2d", []) == {}
    assert shape_figures("Detect", [CALL | {"output_shapes": "1x2 3"}]) == {}
    assert "inside" not in shape_figures("Conv2d", [CALL | {"macs": 0}])


def test_calls_of_several_sizes_weigh_by_their_products() -> None:
    """The larger image has four times the products, and a smaller share of them in the padding."""
    large = {"input_shapes": "1x16x20x20", "output_shapes": "1x20x20x20", "macs": 4 * MACS}
    found = shape_figures("Conv2d", [CALL, large])
    assert found["elements"] == 2000 + 8000
    assert found["inside"] == pytest.approx(((28 / 30) ** 2 + 4 * (58 / 60) ** 2) / 5)
    assert found["kernel"] == 3
    assert "inside" not in shape_figures("Conv2d", [CALL, large | {"output_shapes": None}])


def test_integer_operations_that_were_counted_and_types_with_gates_are_reasons() -> None:
    rows = [row(owner="int8", type="Linear"), row(owner="lstm", type="LSTM"), row(owner="plain", type="Linear")]
    events = ["instrumented.operations-int8", "instrumented.operations-int16", "instrumented.flops-fp32"]
    counters = pl.DataFrame(
        {
            "owner": ["int8", "int8", "lstm", "plain"],
            "event": [events[0], events[1], events[0], events[2]],
            "value": [1.5 * MACS, 0.5 * MACS, 0.0, 9e9],
            "running_share": [1.0] * 4,
        }
    )
    counted = [0.05 * MACS, 2.2 * MACS, 2.2 * MACS]
    owners = [found["owner"] for found in rows]
    metrics = pl.DataFrame({"owner": owners, "counted_flops": counted})
    found = flop_checks(Figures(pl.DataFrame(rows), counters, metrics, (), frozenset()), calls(), [events[2]])
    verdicts = {name: (layer.verdict, layer.expected) for name, layer in found.items() if name != WHOLE}
    assert verdicts == {"int8": ("integer_products", True), "lstm": ("gates", True), "plain": ("more", False)}


def test_layers_and_their_sum() -> None:
    macs = MACS
    rows = [row(), row(owner="b", type="SiLU", macs=0), row(owner="c", macs=0), row(owner="d"), row(owner="e")]
    rows += [row(owner=UNATTRIBUTED, macs=None), row(owner=WHOLE)]
    counted = [2.0 * macs, 300.0, 0.0, None, 1.0 * macs, 77.0, 9e9]
    owners = [str(found["owner"]) for found in rows]
    shares = pl.DataFrame(
        {"owner": ["a", "e", "e"], "event": ["f", "f", "g"], "value": 1.0, "running_share": [1.0, 0.5, 0.9]}
    )
    figures = Figures(
        pl.DataFrame(rows, infer_schema_length=None),
        shares,
        pl.DataFrame({"owner": owners, "counted_flops": counted}),
        (),
        frozenset(),
    )
    found = flop_checks(figures, calls("a", "e"), ["f"])
    assert {name: layer.verdict for name, layer in found.items()} == {
        "a": AGREES, "b": "no_macs", "e": "multiplexed", WHOLE: "differs",
    }  # fmt: skip
    assert (found[WHOLE].counted, found[WHOLE].analytic) == (3.0 * macs, 4.0 * macs)
    assert found[WHOLE].ratio == 0.75
    assert flop_checks(figures, calls("a", "e"), ["g"])["e"].verdict == "multiplexed"


@pytest.mark.parametrize(("shares", "expected"), [((1.0, 0.5), "multiplexed"), ((1.0, 1.0), "winograd")])
def test_one_event_that_was_multiplexed_is_enough(shares: tuple[float, float], expected: str) -> None:
    running = pl.DataFrame({"owner": ["a", "a"], "event": ["f", "g"], "value": 1.0, "running_share": shares})
    counted = pl.DataFrame({"owner": ["a"], "counted_flops": [float(MACS)]})
    figures = Figures(pl.DataFrame([row()]), running, counted, (), frozenset())
    assert flop_checks(figures, calls("a"), ["f", "g"])["a"].verdict == expected


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        (["instrumented.flops-fp32", "instrumented.flops-bf16"], "no_floats"),
        (["instrumented.flops-fp32", "f"], "uncounted"),
        (["f"], "uncounted"),
    ],
)
def test_why_nothing_was_counted_depends_on_who_counted(events: list[str], expected: str) -> None:
    running = pl.DataFrame([{"owner": "a", "event": event, "value": 1.0, "running_share": 1.0} for event in events])
    counted = pl.DataFrame({"owner": ["a"], "counted_flops": [0.0]})
    figures = Figures(pl.DataFrame([row()]), running, counted, (), frozenset())
    assert flop_checks(figures, calls("a"), events)["a"].verdict == expected


def test_without_the_metric_nothing_is_checked() -> None:
    empty = pl.DataFrame({"owner": ["a"]})
    assert flop_checks(Figures(pl.DataFrame([row()]), empty, empty, (), frozenset()), calls("a"), []) == {}
