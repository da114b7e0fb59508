"""oneDNN's verbose text: real output of one version, what other versions write, and whatever else may stand there."""

from __future__ import annotations

import io
import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from collectors.onednn_verbose.collector import OnednnVerboseCollector, notes_of
from collectors.onednn_verbose.lines import Primitive, Verbose, parse

FIXTURES = Path(__file__).parents[2] / "fixtures" / "onednn"

HEADER = (
    "template:operation,engine,primitive,implementation,prop_kind,memory_descriptors,attributes,auxiliary,problem_desc,"
)
CONVOLUTION = (
    "exec,cpu,convolution,jit:avx2,forward_training,"
    "src_f32::blocked:aBcd8b:f0 wei_f32::blocked:ABcd8b8a:f0 bia_undef::undef::f0 dst_f32::blocked:aBcd8b:f0,"
    "attr-post-ops:eltwise_relu ,alg:convolution_direct,mb2_ic16oc16_ih7oh7kh5sh1dh0ph2_iw7ow7kw5sw1dw0pw2,0.0390625"
)


def recorded(name: str) -> list[str]:
    return (FIXTURES / name).read_text().splitlines()


def test_what_was_executed_and_not_what_was_created() -> None:
    lines = recorded("v3.12-timestamps.txt")
    found = parse(lines)
    executed = [line for line in lines if ",primitive,exec," in line]
    assert len(found.primitives) == len(executed) > 8
    assert any(",create:cache_miss," in line for line in lines)
    assert found.not_understood == 0
    assert found.version == "v3.12.0 (commit 80afa71049cd69a3df32adcccb623b12cd7baa22)"
    assert found.instruction_set == "Intel AVX-512 with Intel DL Boost and bfloat16 support"
    assert found.threads == 2
    for primitive, line in zip(found.primitives, executed, strict=True):
        milliseconds = line.split(",")[2]
        assert primitive.begin_ns == int(milliseconds.replace(".", ""))  # printed with six digits
        assert primitive.time_ns == round(float(line.rpartition(",")[2]) * 1e6)
        assert f",{primitive.primitive},{primitive.implementation}," in line


def test_a_primitive_in_full() -> None:
    found = parse(recorded("v3.12-sse41.txt"))
    (reference,) = [one for one in found.primitives if one.implementation == "ref:any"]
    assert reference == Primitive(
        primitive="convolution",
        implementation="ref:any",
        propagation="forward_inference",
        data_types="src:u8 wei:s8 dst:u8",
        layouts="src:acdeb wei:abcdef dst:acdeb",
        attributes=reference.attributes,
        algorithm="convolution_direct",
        problem=reference.problem,
        time_ns=reference.time_ns,
        begin_ns=None,
    )
    assert reference.problem.startswith("g8mb1_ic8oc8_id9od5kd3sd1dd1pd0")
    assert reference.attributes is not None and reference.attributes.startswith("attr-scratchpad:user attr-scales:")
    assert Counter(one.implementation for one in found.primitives)["ref"] == 1  # the LSTM
    assert found.other == ["a line of the model's own"]


@pytest.mark.parametrize(
    ("head", "begin"),
    [
        (["dnnl_verbose,info,cpu,isa:Intel AVX2"], "dnnl_verbose,"),
        (["onednn_verbose,info,prim_" + HEADER + "exec_time"], "onednn_verbose,"),
        (["onednn_verbose,primitive,info," + HEADER + "exec_time"], "onednn_verbose,primitive,"),
        (["onednn_verbose,v1,primitive,info," + HEADER + "exec_time"], "onednn_verbose,v1,primitive,"),
    ],
    ids=["no header", "v2.4", "v3.2", "v3.5"],
)
def test_other_versions(head: list[str], begin: str) -> None:
    found = parse([*head, begin + CONVOLUTION])
    assert found.primitives == [
        Primitive(
            "convolution",
            "jit:avx2",
            "forward_training",
            "src:f32 wei:f32 dst:f32",
            "src:aBcd8b wei:ABcd8b8a dst:aBcd8b",
            "attr-post-ops:eltwise_relu ",
            "convolution_direct",
            "mb2_ic16oc16_ih7oh7kh5sh1dh0ph2_iw7ow7kw5sw1dw0pw2",
            39_062,
            None,
        )
    ]
    assert found.not_understood == 0


def test_a_line_that_does_not_fit_the_header_is_counted() -> None:
    header = "onednn_verbose,v1,primitive,info," + HEADER + "exec_time"
    cut = "onednn_verbose,v1,primitive," + CONVOLUTION
    found = parse([header, cut[:-40], cut + ",0.1", cut[:-9] + "a while", cut])
    assert (len(found.primitives), found.not_understood) == (1, 3)


def test_numbers_that_no_table_holds_are_none() -> None:
    """A model may print such lines."""
    header = "onednn_verbose,v1,primitive,info," + HEADER + "exec_time"
    cut = "onednn_verbose,v1,primitive," + CONVOLUTION
    found = parse(
        [f"onednn_verbose,v1,info,runtime:OpenMP,nthr:{'9' * 5000}", header, cut.rpartition(",")[0] + ",9e15", cut]
    )
    assert found.threads is None
    assert (len(found.primitives), found.not_understood) == (1, 1)


def test_complaints_and_graphs_are_no_primitives() -> None:
    found = parse(
        [
            "onednn_verbose,primitive,exec:check,primitive,unused primitive execution argument (4113),a.cpp:74",
            "onednn_verbose,v1,graph,exec,gpu,_gen_index(_gen_index),1,attrs:{axis:2},inputs:{},outputs:{},0.193115",
            "onednn_verbose,v1,primitive,create:cache_hit,cpu,reorder,jit:uni,undef,,,,1x2,0.1",
        ]
    )
    assert (found.primitives, found.not_understood, found.other) == ([], 0, [])


WORD = st.text(st.characters(exclude_characters=",\n\r", exclude_categories=["Cs", "Cc", "Zl", "Zp"]), max_size=12)
FIELDS = ["engine", "primitive", "implementation", "prop_kind", "memory_descriptors", "attributes", "problem_desc"]


@given(st.permutations(["operation", "exec_time", *FIELDS]), st.data(), st.booleans(), st.integers(0, 10**15))
def test_the_header_gives_the_order(order: list[str], data: st.DataObject, dated: bool, time_ns: int) -> None:
    order = ["operation", *(name for name in order if name != "operation")]  # what a line is about comes first
    words = {name: data.draw(WORD.filter(lambda word: word not in ("info", "graph", "primitive"))) for name in FIELDS}
    values = {**words, "operation": "exec", "exec_time": f"{time_ns // 10**6}.{time_ns % 10**6:06d}"}
    stamp = ["1795297070161.895020"] if dated else []
    header = ["onednn_verbose", "v1", "primitive", "info", f"template:{'timestamp,' * dated}{','.join(order)}"]
    line = ["onednn_verbose", "v1", *stamp, "primitive", *(values[name] for name in order)]
    found = parse([",".join(header), ",".join(line)])
    (primitive,) = found.primitives
    assert (primitive.primitive, primitive.implementation) == (words["primitive"], words["implementation"])
    assert primitive.problem == words["problem_desc"]
    assert primitive.time_ns == time_ns
    assert primitive.begin_ns == (1795297070161895020 if dated else None)


@given(st.lists(st.text() | st.builds(lambda rest: "onednn_verbose,v1,primitive,exec," + rest, st.text())))
@example(["onednn_verbose,"])
@example(["onednn_verbose,v1,primitive,info,template:"])
@example(["onednn_verbose,exec,cpu,sum,ref:any,,,,,,nan"])
def test_nothing_makes_it_fail(lines: list[str]) -> None:
    found = parse(lines)
    assert len(found.primitives) + found.not_understood <= sum("_verbose," in line for line in lines)


@given(st.data())
def test_a_torn_text_loses_only_the_torn_lines(data: st.DataObject) -> None:
    lines = recorded("v3.12-timestamps.txt")
    cut = data.draw(st.integers(8, len(lines) - 1))
    column = data.draw(st.integers(0, len(lines[cut])))
    whole, torn = parse(lines[:cut]), parse([*lines[:cut], lines[cut][:column]])
    assert torn.primitives[: len(whole.primitives)] == whole.primitives
    assert len(torn.primitives) <= len(whole.primitives) + 1


def test_without_any_primitive_no_layer_is_named_that_the_model_may_not_have() -> None:
    (note,) = notes_of(Verbose())
    assert "convolution" not in note.text


class Gone(io.StringIO):
    def write(self, text: str) -> int:
        raise BrokenPipeError


@pytest.mark.parametrize("out", [Gone(), io.TextIOWrapper(io.BytesIO(), encoding="ascii")])
def test_what_the_model_printed_costs_no_primitives(
    out: io.TextIOBase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Standard output may be gone by then, or take ASCII alone."""
    collector = OnednnVerboseCollector()
    collector._raw = tmp_path / "verbose.txt"
    collector._raw.write_text("\n".join(["50 % fertig: größer", *recorded("v3.12-timestamps.txt")]), encoding="utf-8")
    collector._mark()
    collector._mark()
    monkeypatch.setattr(sys, "stdout", out)
    assert collector.stop().tables["primitives"].height > 0
