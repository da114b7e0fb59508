"""Each rule finds its cause, and is silent without it."""

from __future__ import annotations

import dataclasses
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwprof.analysis import main_pass_facts, run_findings
from hwprof.analysis.actions import Action, actions
from hwprof.analysis.findings.facts import Clock, Facts, Fallback, Kernel, Layer, Pooling, Share, percent
from hwprof.analysis.findings.rules import RULES, find_all, names

COMPUTES = {"compute": Share(0.97, 0.96, 0.98)}


def share(value: float) -> Share:
    return Share(value, 0.9 * value, 1.1 * value)


def parts(**more: float) -> dict[str, Share]:
    return {"compute": share(1 - sum(more.values())), **{name: share(value) for name, value in more.items()}}


def clock(*quarters: tuple[float, float, float]) -> Clock:
    return Clock(*(Share(*quarter) for quarter in quarters))


LAYERS = (
    Layer("a", 0.5, {"compute": 0.7, "layout": 0.3, "waiting": 0.0, "dispatch": 0.0}),
    Layer("b", 0.3, {"compute": 0.5, "layout": 0.1, "waiting": 0.4, "dispatch": 0.0}),
    Layer("c", 0.2, {"compute": 0.2, "dispatch": 0.8}),
)
QUIET = Facts(
    parts=parts(layout=0.01, waiting=0.02, dispatch=0.05), layers=LAYERS, convolutions=9, threads=2, processors=2
)

CAUSES: dict[str, dict[str, Any]] = {
    "layout_changes": {"parts": parts(layout=0.2)},
    "fresh_memory": {"parts": parts(page_faults=0.1, allocation=0.03), "anew": ("a", "c"), "faults": 48218.0},
    "scalar_pooling": {
        "kernels": (Kernel("at::native::cpu_max_pool (parallel)", "libtorch_cpu.so", share(0.1), layers=("b", "c")),)
    },
    "emulated_numbers": {"emulated": {"b": "bfloat16"}},
    "blocked": {"parts": parts(blocked=0.3)},
    "default_blas": {
        "kernels": tuple(Kernel(f"mkl_blas_def_{n}", "t", share(0.03)) for n in "ab"),
        "vendor": "AuthenticAMD",
        "gemm_of_roof": 0.4,
    },
    "memory_bound": {"layers": tuple(one._replace(bound="DRAM bandwidth") for one in LAYERS[1:])},
    "team_waits": {"parts": parts(waiting=0.4)},
    "dispatch": {"parts": parts(dispatch=0.4)},
    "long_stage": {"stages": {"nms": 0.3, "postprocess": 0.35, "load": 0.1}},
    "oversubscription": {"ready": 7.1, "threads": 8, "parts": parts(waiting=0.4)},
    "denormals": {"denormals": {"b": 0.3}},
    "repeated_pooling": {"poolings": ((Pooling("c", 5), Pooling("b", 9), Pooling("a", 13)),)},
    "python_code": {"parts": parts(dispatch=0.4), "python": share(0.3)},
    "garbage_collection": {
        "kernels": (
            Kernel("gc_collect_main", "python3.11", share(0.05), "python"),
            Kernel("list_traverse", "python3.11", share(0.01), "python"),
        )
    },
    "weight_reorders": {"weight_reorders": share(0.05), "weight_layers": ("a", "b")},
    "shared_cores": {"shared_core": 0.8, "cores": 4, "threads": 4, "processors": 8},
    "numa_placement": {"nodes": (0.6, 0.4), "node_cores": 16, "threads": 8, "processors": 32},
    "clock_drop": {"clock": clock((4.1, 4.0, 4.2), (4.1, 4.0, 4.2), (3.6, 3.5, 3.7), (3.5, 3.4, 3.7))},
    "serial_layers": {"serial": ("a", "c")},
    "imbalance": {"imbalance": {"a": 0.5}},
    "fallback_code": {"fallbacks": (Fallback("gemm:jit", 0.2, "im2col", "other channels", ("a",)),)},
}

NO_CAUSE: dict[str, tuple[str, dict[str, Any]]] = {
    "others have the processors": ("oversubscription", {"ready": 2.0, "team_preempted": 0.3, "threads": 2}),
    "as many threads as processors": ("oversubscription", {"processors": 8, "parts": parts(waiting=0.05)}),
    "few denormal numbers": ("denormals", {"denormals": {"b": 0.005}}),
    "denormal numbers in a short layer": ("denormals", {"denormals": {"d": 0.9}, "layers": (Layer("d", 0.01, {}),)}),
    "poolings of one size": ("repeated_pooling", {"poolings": ((Pooling("c", 5), Pooling("b", 5)),)}),
    "poolings that no padding chains": ("repeated_pooling", {"poolings": ((Pooling("c", 5), Pooling("b", 8)),)}),
    "poolings that take no time": ("repeated_pooling", {"layers": tuple(one._replace(of_whole=0.0) for one in LAYERS)}),
    "poolings whose time is not known": ("repeated_pooling", {"layers": LAYERS[:1]}),
    "Python that calls tiny layers": ("python_code", {"python_of_calls": 0.25, "parts": parts(dispatch=0.1)}),
    "little Python": ("python_code", {"python": share(0.02), "parts": parts(dispatch=0.05)}),
    "traversal that is not the interpreter's": (
        "garbage_collection",
        {"kernels": (Kernel("graph_traverse", "libother.so", share(0.2), "other"),)},
    ),
    "reorders of maps": ("weight_reorders", {"weight_reorders": share(0.001)}),
    "cores of their own": ("shared_cores", {"shared_core": 0.05}),
    "a machine that does not say": ("shared_cores", {"shared_core": None}),
    "one core": ("shared_cores", {"cores": 1, "threads": 1}),
    "one node": ("numa_placement", {"nodes": (1.0,)}),
    "more threads than a node has cores": ("numa_placement", {"threads": 24}),
    "a clock that varies": ("clock_drop", {"clock": clock((4.1, 3.6, 4.2), *3 * [(3.7, 3.4, 4.1)])}),
    "a clock that the host sets": ("clock_drop", {**CAUSES["clock_drop"], "virtual": True}),
    "a clock that is steady": ("clock_drop", {"clock": clock((4.1, 4.08, 4.12), *3 * [(4.0, 3.98, 4.02)])}),
    "a clock that was taken at the end": ("clock_drop", {"clock": clock(*3 * [(3.0, 2.99, 3.0)], (2.54, 2.54, 2.88))}),
    "one thread": ("serial_layers", {"threads": 1}),
    "what is mostly dispatch": ("serial_layers", {"serial": ("c",)}),
    "even parts": ("imbalance", {"imbalance": {"a": 0.1}}),
    "a short uneven layer": ("imbalance", {"imbalance": {"c": 0.5}}),
    "nothing better is known": ("fallback_code", {"fallbacks": (Fallback("ref:any", 0.2, "reference", None, ("a",)),)}),
    "the team was preempted": ("team_waits", {"team_preempted": 0.38}),
}
"""What looks like a cause and is none: the case, and what is else in it."""


def test_nothing_is_found_where_nothing_is_lost() -> None:
    assert find_all(QUIET) == [] and find_all(Facts()) == []


@pytest.mark.parametrize("rule", CAUSES)
def test_a_rule_finds_its_cause_alone(rule: str) -> None:
    (found,) = find_all(dataclasses.replace(QUIET, **CAUSES[rule]))
    assert found.rule == rule and 0 <= found.gain_low < found.gain_high <= 1
    assert found.title and found.evidence and found.meaning and found.remedy


def test_there_is_a_case_for_every_rule() -> None:
    assert set(CAUSES) == set(names()) and len(RULES) == len(set(names()))


@pytest.mark.parametrize("why", NO_CAUSE)
def test_what_stands_just_beside_a_cause_is_none(why: str) -> None:
    rule, instead = NO_CAUSE[why]
    assert find_all(dataclasses.replace(QUIET, **{**CAUSES[rule], **instead})) == []


@pytest.mark.parametrize(
    ("rule", "without"),
    [
        ("layout_changes", {"convolutions": 0}),
        ("default_blas", {"vendor": "GenuineIntel"}),
        ("default_blas", {"gemm_of_roof": 0.87}),
        ("default_blas", {"gemm_of_roof": None}),
        ("team_waits", {"threads": 1}),
        ("memory_bound", {"layers": tuple(one._replace(bound="compute") for one in LAYERS)}),
    ],
)
def test_what_looks_like_it_is_not_it(rule: str, without: dict[str, Any]) -> None:
    assert find_all(dataclasses.replace(QUIET, **{**CAUSES[rule], **without})) == []


def test_evidence_names_the_layers_that_lose_most() -> None:
    (found,) = find_all(dataclasses.replace(QUIET, parts=parts(layout=0.2)))
    assert list(found.layers) == ["a", "b"] and "20.0% (18.0 to 22.0%) of the time, most in a, b" in found.evidence
    (found,) = find_all(dataclasses.replace(QUIET, **CAUSES["fresh_memory"]))
    assert "48,218 page faults" in found.evidence and "MALLOC_MMAP_THRESHOLD_" in (found.remedy or "")
    (found,) = find_all(dataclasses.replace(QUIET, **CAUSES["memory_bound"]))
    assert found.evidence.startswith("50.0% of the time, most in b, c")


def test_nobody_is_sent_to_numbers_that_the_processor_does_not_multiply() -> None:
    for rule in ("default_blas", "memory_bound"):
        for has in (True, False):
            (found,) = find_all(dataclasses.replace(QUIET, **CAUSES[rule], bfloat16=has))
            assert ("bfloat16" in found.remedies, "bfloat16" in (found.remedy or "")) == (has, has)
            assert found.remedy


def test_what_is_compiled_is_not_to_be_compiled() -> None:
    for name, cause in CAUSES.items():
        for found in find_all(dataclasses.replace(QUIET, **cause, compiled=True)):
            assert "compile" not in found.remedies and (found.remedies or found.remedy), name
            assert "torch.compile(" not in (found.remedy or "") + (found.by_hand or ""), (name, found.remedy)


def test_what_the_run_had_is_no_remedy() -> None:
    cause = dataclasses.replace(QUIET, **CAUSES["layout_changes"])
    (found,) = find_all(cause)
    assert found.remedies == ("channels_last", "compile")
    (found,) = find_all(dataclasses.replace(cause, variants=["channels_last"]))
    assert found.remedies == ("compile",)
    (found,) = find_all(dataclasses.replace(cause, variants=["channels_last", "torchscript"]))
    assert found.remedies == () and found.remedy is None
    assert found.meaning.endswith("; it has channels_last and TorchScript already")
    assert actions([found], None) == []
    (found,) = find_all(dataclasses.replace(cause, variants=["onnxruntime"]))
    assert found.remedies == ()


def test_parts_are_not_uneven_because_others_have_a_processor() -> None:
    uneven = {**CAUSES["imbalance"], "team_preempted": 0.9}
    assert not [one for one in find_all(dataclasses.replace(QUIET, **uneven)) if one.rule == "imbalance"]


def test_default_kernels_lose_what_they_do_not_attain() -> None:
    (found,) = find_all(dataclasses.replace(QUIET, **CAUSES["default_blas"]))
    share = sum(kernel.share.high for kernel in CAUSES["default_blas"]["kernels"])
    assert found.gain_high == pytest.approx(0.8 * share) and "40% of the FP32 peak" in found.evidence
    (found,) = find_all(dataclasses.replace(QUIET, **CAUSES["default_blas"], bfloat16=False))
    assert found.gain_high == pytest.approx(0.6 * share), "twice as much in bfloat16"


def test_threads_beyond_the_processors_are_named_as_that() -> None:
    (found,) = find_all(dataclasses.replace(QUIET, parts=parts(waiting=0.2), threads=8, ready=6.0))
    assert found.title == "more threads than processors" and found.remedies == ("threads=2",)
    (found,) = find_all(dataclasses.replace(QUIET, parts=parts(waiting=0.2)))
    assert "set_num_threads" not in (found.remedy or ""), "half of the threads would take longer"
    (found,) = find_all(
        dataclasses.replace(QUIET, parts=parts(waiting=0.2), threads=8, ready=6.0, variants=("openvino",))
    )
    assert found.remedy == "compile_model(…, {'INFERENCE_NUM_THREADS': 2})", "torch's number is none of the runtime's"
    pools = dataclasses.replace(QUIET, ready=4.0, other_threads={"pool": 1.9, "helper": 0.01})
    (found,) = find_all(pools)
    assert found.title.startswith("several pools") and "pool (1.9)" in found.evidence and "helper" not in found.evidence


def test_a_layer_that_one_thread_does_is_not_uneven_too() -> None:
    (found,) = find_all(dataclasses.replace(QUIET, serial=("a",), imbalance={"a": 1.0}))
    assert found.rule == "serial_layers" and found.gain_high == pytest.approx(0.5 * 0.7 / 2)


def test_the_gain_of_a_chain_is_told_from_the_poolings_own_times() -> None:
    """By 5, 9 and 13 in 0.2, 0.3 and 0.5 of the time: as a chain it is three times the one by 5."""
    (found,) = find_all(dataclasses.replace(QUIET, **CAUSES["repeated_pooling"]))
    assert list(found.layers) == ["c", "b", "a"] and "by 5, 5, 5" in (found.remedy or "")
    assert found.gain_low == pytest.approx(0.7 * (1.0 - 0.6)) and found.gain_high == pytest.approx(0.8)
    far_apart = dataclasses.replace(QUIET, poolings=((Pooling("c", 3), Pooling("b", 13)),))
    assert find_all(far_apart) == [], "the step by 11 may take as long as the pooling by 13"


def test_python_that_computes_is_not_dispatch_and_dispatch_is_not_python() -> None:
    (found,) = find_all(dataclasses.replace(QUIET, parts=parts(dispatch=0.4), python=share(0.15)))
    assert found.rule == "dispatch", "most of it is the framework's"
    (found,) = find_all(dataclasses.replace(QUIET, **CAUSES["python_code"]))
    assert found.rule == "python_code" and "hwprof report --python" in found.evidence


def test_what_others_had_of_the_processor_makes_no_cause_smaller() -> None:
    """Half of the time was another program's: what is 4% of all is 8% of the time that was left."""
    disturbed = {"compute": share(0.44), "layout": share(0.04), "preempted": share(0.52)}
    (found,) = find_all(dataclasses.replace(QUIET, parts=disturbed))
    assert found.rule == "layout_changes" and found.evidence.startswith("8.3%")
    serial = Layer("s", 0.9, {"compute": 0.3, "preempted": 0.65})
    half = {"compute": share(0.3), "dispatch": share(0.18), "preempted": share(0.5)}
    found_too = find_all(dataclasses.replace(QUIET, parts=half, layers=(serial,), serial=("s",), python=share(0.15)))
    assert {one.rule for one in found_too} == {"serial_layers", "python_code"}
    all_of_it = {"layout": share(0.01), "preempted": Share(1.0, 0.99, 1.0)}
    assert all(one.gain_high <= 1 for one in find_all(dataclasses.replace(QUIET, parts=all_of_it)))


@pytest.mark.parametrize(
    ("instead", "remedy"),
    [({"threads": 8, "cores": 4}, "torch.set_num_threads(4)"), ({"threads": 4, "cores": 4}, "OMP_PROC_BIND=spread")],
)
def test_threads_on_one_core_are_too_many_or_placed_so(instead: dict[str, Any], remedy: str) -> None:
    (found,) = find_all(dataclasses.replace(QUIET, **{**CAUSES["shared_cores"], **instead}))
    assert remedy in (found.remedy or "")


def test_what_could_win_most_comes_first() -> None:
    several = dataclasses.replace(QUIET, parts=parts(layout=0.1, waiting=0.3, dispatch=0.2))
    assert [one.rule for one in find_all(several)] == ["team_waits", "dispatch", "layout_changes"]


@given(
    st.dictionaries(
        st.sampled_from(["compute", "layout", "page_faults", "allocation", "waiting", "dispatch"]),
        st.floats(0, 1).map(lambda value: Share(value, value, value)),
    ),
    st.integers(1, 512),
    st.integers(1, 512),
)
def test_gains_are_intervals_within_the_whole(found: dict[str, Share], threads: int, processors: int) -> None:
    facts = Facts(parts=found, layers=LAYERS, anew=("a",), convolutions=1, threads=threads, processors=processors)
    for one in find_all(facts):
        assert 0 <= one.gain_low <= one.gain_high <= 1


SHARES = st.floats(0, 1).map(lambda value: Share(value, value, value))


@given(
    st.dictionaries(st.sampled_from("abc"), st.floats(0, 1)),
    st.dictionaries(st.sampled_from("abc"), st.floats(0, 31)),
    st.lists(st.sampled_from([Pooling(path, size) for path in "abc" for size in (3, 5, 9, 13)]), max_size=5),
    st.lists(st.floats(0, 1), max_size=3),
    st.floats(0, 64),
    SHARES,
)
def test_gains_of_the_other_causes_are_too(
    denormals: dict[str, float],
    imbalance: dict[str, float],
    pools: list[Pooling],
    nodes: list[float],
    ready: float,
    sampled: Share,
) -> None:
    facts = dataclasses.replace(
        QUIET, denormals=denormals, imbalance=imbalance, poolings=[pools], nodes=nodes, node_cores=64, ready=ready,
        shared_core=sampled.value, cores=4, python=sampled, weight_reorders=sampled, weight_layers=("a",),
        kernels=(Kernel("gc_collect_main", "python3.11", sampled, "python"),),
    )  # fmt: skip
    for one in find_all(facts):
        assert 0 <= one.gain_low <= one.gain_high <= 1 and set(one.layers) <= {"a", "b", "c"}


def test_new_memory_costs_its_page_faults_at_what_one_costs_where_samples_met_less_of_it() -> None:
    of = parts(page_faults=0.3, allocation=0.05, preempted=0.2)
    for cost, most in ((0.1, of["page_faults"].high / 0.8 + of["allocation"].high / 0.8), (0.64, 0.8), (0.9, 1.0)):
        (found,) = find_all(dataclasses.replace(QUIET, parts=of, anew=("a",), new_pages={None: cost, "a": cost}))
        assert found.rule == "fresh_memory" and found.gain_high == pytest.approx(most)


def test_a_layer_that_does_little_but_fault_may_lose_all_its_time() -> None:
    layers = (Layer("a", 0.6, {"page_faults": 0.6, "compute": 0.4}), Layer("b", 0.4, {"compute": 1.0}))
    facts = dataclasses.replace(QUIET, parts=parts(page_faults=0.36), layers=layers, anew=("a",))
    (found,) = find_all(facts)
    assert found.gain_high == pytest.approx(0.6)


def test_denormal_numbers_may_take_all_of_layers_that_do_little_but_compute() -> None:
    """``a`` is measured to take 99% of its time for them; ``b`` has no more than it computes and samples may be off."""
    layers = (Layer("a", 0.5, {"compute": 0.92, "page_faults": 0.08}), Layer("b", 0.5, {"compute": 0.2}))
    of = {"compute": Share(0.56, 0.5, 0.6)}
    for denormals, most in (({"a": 1.0}, 0.5), ({"b": 1.0}, 0.14), ({"a": 1.0, "b": 1.0}, 0.6)):
        (found,) = find_all(dataclasses.replace(QUIET, parts=of, layers=layers, denormals=denormals))
        assert found.gain_high == pytest.approx(most) and " of the time, most in" in found.evidence


def test_denormal_numbers_on_a_disturbed_machine_are_of_the_time_that_was_left() -> None:
    layers = (Layer("a", 1.0, {"compute": 0.29, "page_faults": 0.2, "preempted": 0.5}),)
    of = {"compute": Share(0.29, 0.19, 0.41), "page_faults": share(0.2), "preempted": Share(0.5, 0.4, 0.6)}
    facts = dataclasses.replace(QUIET, parts=of, layers=layers, denormals={"a": 1.0}, timed_new_pages=0.0)
    (found,) = find_all(facts)
    assert "58.0% of the time that others left, most in a" in found.evidence and found.gain_high == pytest.approx(1.0)


def test_layout_changes_cost_the_memory_of_the_copies_too() -> None:
    layers = (
        Layer("conv", 0.5, {"layout": 0.2, "page_faults": 0.1, "allocation": 0.02, "compute": 0.68}),
        Layer("cat", 0.5, {"layout": 0.01, "page_faults": 0.5, "compute": 0.49}),
    )
    of = parts(layout=0.105, page_faults=0.3, allocation=0.01)
    facts = dataclasses.replace(QUIET, parts=of, layers=layers, convolutions=1, anew=("cat",))
    for pages, most in (({}, 0.06), ({None: 0.5, "conv": 0.2, "cat": 0.3}, 0.2)):
        found = {one.rule: one for one in find_all(dataclasses.replace(facts, new_pages=pages))}
        layout, fresh = found["layout_changes"], found["fresh_memory"]
        assert layout.gain_high == pytest.approx(of["layout"].high + most)
        assert layout.shared == {"fresh_memory": pytest.approx(most)}
        both = Action("torch.compile", "compile", [layout, fresh])
        assert both.gain_high == pytest.approx(min(1.0, of["layout"].high + fresh.gain_high))
        assert Action("channels_last", "channels_last", [layout]).gain_high == layout.gain_high


def test_a_team_larger_than_the_processors_is_found_though_most_of_it_sleeps() -> None:
    (found, *_) = find_all(dataclasses.replace(QUIET, ready=1.8, threads=8, parts=parts(waiting=0.5, preempted=0.2)))
    assert found.rule == "oversubscription" and found.remedies == ("threads=2",)
    assert found.evidence.startswith("8 threads, 2 processors, 1.8 threads ran or were ready")
    rules = [one.rule for one in find_all(dataclasses.replace(QUIET, ready=1.8, threads=2, parts=parts(waiting=0.5)))]
    assert "oversubscription" not in rules


def test_shares_of_what_others_left_say_so() -> None:
    quiet, busy = (parts(layout=0.2, preempted=preempted) for preempted in (0.01, 0.3))
    for of, words in ((quiet, "of the time, most"), (busy, "of the time that others left, most")):
        (found,) = find_all(dataclasses.replace(QUIET, parts=of))
        assert found.rule == "layout_changes" and words in found.evidence


def test_memory_that_is_not_torchs_is_found_by_its_page_faults() -> None:
    layers = (Layer("numpy", 0.6, {"page_faults": 0.5, "compute": 0.5}), *LAYERS[1:])
    (found,) = find_all(dataclasses.replace(QUIET, parts=parts(page_faults=0.3), layers=layers))
    assert found.rule == "fresh_memory" and list(found.layers) == ["numpy"]


def test_a_layer_whose_calling_thread_waits_for_the_one_with_most_is_uneven_too() -> None:
    waits = (Layer("bags", 0.8, {"compute": 0.05, "waiting": 0.9, "dispatch": 0.05}), *LAYERS[1:])
    found = find_all(dataclasses.replace(QUIET, parts=parts(waiting=0.05), layers=waits, imbalance={"bags": 0.7}))
    assert [one.rule for one in found] == ["imbalance"] and found[0].gain_high > 0.3
    found = find_all(dataclasses.replace(QUIET, parts=parts(waiting=0.05), layers=waits, serial=("bags",)))
    assert [one.rule for one in found] == ["serial_layers"] and found[0].title == "1 layer runs on one of 2 threads"


def test_the_collector_is_no_code_of_pythons() -> None:
    kernels = (Kernel("gc_collect_main", "python3.11", share(0.35), "python"),)
    found = find_all(dataclasses.replace(QUIET, parts=parts(dispatch=0.4), python=share(0.38), kernels=kernels))
    assert [one.rule for one in found if one.rule in ("python_code", "garbage_collection")] == ["garbage_collection"]


@pytest.mark.parametrize(
    ("parts_of_whole", "share"),
    [
        ([("page_faults", 30.0, 60.0), ("compute", 10.0, 20.0)], 0.5),
        ([("page_faults", 30.0, 30.0)], 1.0),
        ([("page_faults", 30.0, 0.0)], 1.0),
        ([("compute", 10.0, 20.0)], 1.0),
    ],
)
def test_page_faults_of_threads_that_fault_side_by_side_take_the_calling_thread_s_part_of_the_time(
    parts_of_whole: list[tuple[str, float, float]], share: float
) -> None:
    whole = {"parts": [{"part": part, "ns": ns, "threads_ns": all_ns} for part, ns, all_ns in parts_of_whole]}
    assert run_findings._of_calling_thread(whole, "page_faults") == share


@pytest.mark.parametrize(
    ("parts_of_whole", "hardly"),
    [([("blocked", 0.97, 0), ("compute", 0.03, 4)], True), ([("blocked", 0.5, 0), ("compute", 0.5, 4)], False)],
)
def test_a_thread_that_sleeps_needs_no_samples(parts_of_whole: list[tuple[str, float, int]], hardly: bool) -> None:
    whole = {"parts": [{"part": part, "share": share, "samples": number} for part, share, number in parts_of_whole]}
    assert run_findings._hardly_there(whole) is hardly


def test_page_faults_that_only_profilers_met_are_no_cause() -> None:
    faulting = dataclasses.replace(QUIET, **CAUSES["fresh_memory"])
    assert not find_all(dataclasses.replace(faulting, timed_new_pages=0.005))
    for timed in (None, 0.05):
        (found,) = find_all(dataclasses.replace(faulting, timed_new_pages=timed))
        assert found.rule == "fresh_memory" and found.gain_high > 0.1
    few = dataclasses.replace(faulting, parts=parts(page_faults=0.04), anew=())
    assert not find_all(few) and not find_all(dataclasses.replace(few, timed_new_pages=0.012)), "nobody knows whose"
    assert not find_all(dataclasses.replace(few, timed_new_pages=0.19)), "Python's, or another library's"
    (found,) = find_all(dataclasses.replace(few, timed_new_pages=0.19, torch_takes_them=True))
    assert found.rule == "fresh_memory", "an iteration that was timed had them"
    assert faulting.new_memory() > 0 == dataclasses.replace(faulting, timed_new_pages=0.0).new_memory(), "nobody's"


def test_a_kernel_takes_the_time_of_its_layers_where_that_is_more() -> None:
    """What spins beside it takes of the processor time, and nothing of the layer's."""
    kernel = CAUSES["scalar_pooling"]["kernels"][0]._replace(share=Share(0.022, 0.018, 0.026), of_time=0.073)
    (found,) = find_all(dataclasses.replace(QUIET, kernels=(kernel,)))
    assert found.gain_high == pytest.approx(0.026 * 0.073 / 0.022)
    assert not find_all(dataclasses.replace(QUIET, kernels=(kernel._replace(of_time=0.01),)))


def test_what_a_kernel_could_win_is_the_upper_end_of_its_evidence_and_no_more_than_its_layers_take() -> None:
    """Few samples: 7.7% of the CPU time (3.8 to 15%), 10.6% of the time, all of it in a layer that takes 18.1%."""
    few = Kernel("at::native::cpu_max_pool", "t", Share(0.077, 0.038, 0.15), layers=("a",), of_time=0.106, within=0.181)
    (found,) = find_all(dataclasses.replace(QUIET, kernels=(few,)))
    assert found.gain_high == pytest.approx(0.181)
    assert found.evidence == "10.6% (5.2 to 18.1%) of the time in at::native::cpu_max_pool, most in a"
    (found,) = find_all(dataclasses.replace(QUIET, kernels=(few._replace(of_time=0.07),)))
    assert found.gain_high == pytest.approx(0.15) and found.evidence.startswith("7.7% (3.8 to 15.0%) of the CPU time")
    (found,) = find_all(dataclasses.replace(QUIET, kernels=(few._replace(of_time=0.07, within=0.12),)))
    assert found.gain_high == pytest.approx(0.12)
    blas = dataclasses.replace(QUIET, **CAUSES["default_blas"])
    kernels = tuple(one._replace(within=0.031) for one in blas.kernels)
    (found,) = find_all(dataclasses.replace(blas, kernels=kernels))
    assert found.gain_high == pytest.approx(0.8 * 0.062)


def test_the_layers_that_a_kernel_was_met_in_are_known_only_where_each_has_a_time() -> None:
    rows = [("a", 1), ("b", 1), ("a", 2), ("x", 2), ("b", 3), ("b", None)]
    table = pl.DataFrame(rows, schema=["layer", "kernel"], orient="row")
    assert main_pass_facts.times_within(table, {"a": 0.4, "b": 0.1}) == pytest.approx({1: 0.5, 3: 0.1})


def test_memory_for_copies_takes_no_longer_than_their_layers() -> None:
    layers = (Layer("conv", 0.1, {"layout": 0.5, "page_faults": 0.5}), Layer("rest", 0.9, {"compute": 1.0}))
    facts = dataclasses.replace(QUIET, layers=layers, new_pages={None: 0.3, "conv": 0.3})
    assert facts.new_memory(["conv"]) == pytest.approx(0.1)
    half = dataclasses.replace(facts, parts={"preempted": share(0.5)}, new_pages={})
    taken = Layer("conv", 0.1, {"page_faults": 0.3, "preempted": 0.5})
    assert dataclasses.replace(half, layers=(taken,)).new_memory(["conv"]) == pytest.approx(0.1), "all that was left"


def test_copies_and_the_memory_for_them_take_no_longer_than_their_layers() -> None:
    layers = (Layer("conv", 0.2, {"layout": 0.5, "page_faults": 0.5}), Layer("rest", 0.8, {"compute": 1.0}))
    facts = dataclasses.replace(QUIET, layers=layers, parts=parts(layout=0.1), new_pages={None: 0.3, "conv": 0.3})
    (found,) = find_all(facts)
    assert found.gain_high == pytest.approx(0.2) and found.shared == {"fresh_memory": pytest.approx(0.09)}
    assert found.evidence.endswith("most in conv; new memory for the copies 9.0% at most")


def test_weights_are_not_reordered_for_longer_than_their_layers_take() -> None:
    facts = dataclasses.replace(QUIET, weight_reorders=Share(0.2, 0.1, 0.4), weight_layers=("c",))
    (found,) = find_all(facts)
    assert found.gain_high == pytest.approx(0.2)
    (found,) = find_all(dataclasses.replace(facts, weight_layers=("c", "x")))
    assert found.gain_high == pytest.approx(0.4), "nobody knows how long x takes"


@pytest.mark.parametrize("rule", ["fresh_memory", "dispatch", "denormals"])
def test_what_could_be_won_at_most_is_said_by_the_evidence(rule: str) -> None:
    """Layers that may do little else lose all of their time: more than an interval of the part has."""
    part = {"fresh_memory": "page_faults", "dispatch": "dispatch", "denormals": "compute"}
    layers = (Layer("a", 0.6, {part[rule]: 0.6, "other": 0.4}), Layer("b", 0.4, {"compute": 1.0}))
    of = {part[rule]: Share(0.36, 0.33, 0.39), "allocation": Share(0.04, 0.02, 0.07)}
    facts = Facts(parts=of, layers=layers, anew=("a",), denormals={"a": 1.0})
    found = {one.rule: one for one in find_all(facts)}[rule]
    assert f"{100 * found.gain_high:.1f}%" in found.evidence, (found.gain_high, found.evidence)


def test_new_memory_is_told_with_what_malloc_takes_and_with_what_page_faults_cost() -> None:
    of = parts(page_faults=0.176, allocation=0.055)
    (found,) = find_all(dataclasses.replace(QUIET, parts=of, anew=("a",)))
    assert found.gain_high == pytest.approx(1.1 * (0.176 + 0.055))
    assert found.evidence == "17.6% (15.8 to 19.4%) of the time in page faults, most in a; 25.4% at most, with malloc"
    (found,) = find_all(dataclasses.replace(QUIET, parts=parts(page_faults=0.176), anew=("a",)))
    assert found.evidence == "17.6% (15.8 to 19.4%) of the time in page faults, most in a"


def test_a_kernel_s_time_is_its_part_of_what_each_layer_computes() -> None:
    rows = [
        ("a", 1, "torch", 30),
        ("a", 2, "torch", 10),
        ("a", 3, "openmp", 60),
        ("b", 1, "jit", 5),
        ("x", 1, "jit", 9),
    ]
    table = pl.DataFrame(rows, schema=["layer", "kernel", "domain", "cpu_ns"], orient="row")
    assert main_pass_facts.kernel_times(table, {"a": 0.4, "b": 0.1}) == pytest.approx({1: 0.4 * 0.75 + 0.1, 2: 0.1})
    assert main_pass_facts.kernel_times(table, {}) == {}


def test_a_kernel_names_the_layers_that_it_is_in() -> None:
    (found,) = find_all(dataclasses.replace(QUIET, **CAUSES["scalar_pooling"]))
    assert found.layers == ("b", "c") and found.evidence.endswith("at::native::cpu_max_pool (parallel), most in b, c")


def test_an_interval_that_has_no_width_is_not_shown() -> None:
    assert percent(Share(0.0801, 0.0724, 0.0889)) == "8.0% (7.2 to 8.9%)"
    assert percent(Share(0.9531, 0.9529, 0.9533)) == "95.3%"


@pytest.mark.parametrize("inner", ["nms", "masks"])
def test_the_stage_within_the_postprocessing_that_is_most_of_it_is_named(inner: str) -> None:
    (found,) = find_all(dataclasses.replace(QUIET, stages={inner: 0.3, "postprocess": 0.35}))
    assert found.stage == inner and f"stage {inner} " in found.title and found.evidence.startswith(f"{inner}, 30")
    (found,) = find_all(dataclasses.replace(QUIET, stages={inner: 0.1, "postprocess": 0.35}))
    assert found.stage == "postprocess"
