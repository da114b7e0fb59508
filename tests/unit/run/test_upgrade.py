"""Manifests of version 1 read like new ones: notes get kinds, details theirs, collectors their roles."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from hwprof.run import manifest
from hwprof.run.details import CountingDetail, InstrumentedDetail, PrimitivesDetail, SamplingDetail
from hwprof.run.manifest import Manifest
from hwprof.run.notes import NoteKind
from hwprof.run.roles import Role
from tests.support.synthetic_run import build

REASON = "the hypervisor (KVM) shows this virtual machine no PMU"
REMEDY = "give it one (QEMU/KVM: -cpu host,pmu=on; clouds: a bare-metal instance), or run on real hardware"
COLLECTORS: list[dict[str, Any]] = [
    {
        "name": "perf",
        "state": "ran",
        "notes": [f"not counted: l1d.replacement, slots and 15 more: {REASON} ({REMEDY})"],
        "detail": {"hardware": [], "software": ["task-clock"], "kernel": True, "edge_reader": "native",
                   "unavailable_events": {"slots": {"reason": REASON, "remedy": REMEDY}}},
    },
    {"name": "sampler", "state": "ran", "notes": ["sampling took about 2%"],
     "detail": {"event": "cpu-clock", "frequency_hz": 999, "kernel": True, "lost": 7, "groups": []}},
    {"name": "onednn_verbose", "state": "ran",
     "detail": {"file": "verbose.txt", "primitives": 3, "held_to": "ONEDNN_MAX_CPU_ISA=SSE41"}},
    {"name": "instrumented", "state": "ran", "detail": {"frida": "17", "reference_ghz": 2.3}},
    {"name": "rapl", "state": "unavailable", "reason": "no counters", "remedy": None, "detail": {}},
    {"name": "theirs", "state": "ran", "detail": {"anything": [1]}},
]  # fmt: skip


def old(tmp_path: Any, collectors: list[dict[str, Any]]) -> bytes:
    raw = msgspec.json.decode(manifest.encode(build(tmp_path).manifest))
    raw["schema_version"] = 1
    raw["passes"][0]["collectors"] = collectors
    return msgspec.json.encode(raw)


@pytest.fixture
def read(tmp_path: Any) -> Manifest:
    return manifest.decode(old(tmp_path, COLLECTORS))


def test_every_collector_has_its_role_and_its_kind_of_detail(read: Manifest) -> None:
    perf, sampler, onednn, instrumented, rapl, theirs = read.passes[0].collectors
    assert read.schema_version == manifest.SCHEMA_VERSION
    assert [one.role for one in (perf, sampler, onednn, instrumented, rapl, theirs)] == [
        Role.COUNTER, Role.SAMPLER, Role.PRIMITIVES, Role.COUNTER, Role.ENERGY, Role.OTHER,
    ]  # fmt: skip
    counting = perf.detail_as(CountingDetail)
    assert counting is not None and counting.unavailable["slots"].remedy == REMEDY
    samples = sampler.detail_as(SamplingDetail)
    assert samples is not None and (samples.frequency_hz, samples.lost) == (999, 7)
    primitives = onednn.detail_as(PrimitivesDetail)
    assert primitives is not None and primitives.restricted_to == "ONEDNN_MAX_CPU_ISA=SSE41"
    counts = instrumented.detail_as(InstrumentedDetail)
    assert counts is not None and counts.reference_ghz == 2.3
    assert rapl.detail == {} and theirs.detail["anything"] == [1]


def test_notes_get_a_kind_and_reason_and_remedy_come_apart(read: Manifest) -> None:
    (note,) = read.passes[0].collectors[0].notes
    assert (note.kind, note.subject) == (NoteKind.NOT_AVAILABLE, "l1d.replacement, slots and 15 more")
    assert (note.text, note.remedy) == (REASON, REMEDY)
    (other,) = read.passes[0].collectors[1].notes
    assert (other.kind, str(other)) == (NoteKind.OTHER, "sampling took about 2%")


def test_a_new_manifest_comes_back_as_it_was(read: Manifest) -> None:
    assert manifest.decode(manifest.encode(read)) == read


def test_a_detail_of_a_known_kind_must_be_one(tmp_path: Any) -> None:
    broken = {"name": "sampler", "state": "ran", "detail": {"event": "cycles", "frequency_hz": "often", "kernel": True}}
    with pytest.raises(msgspec.ValidationError):
        manifest.decode(old(tmp_path, [broken]))


@pytest.mark.parametrize(
    "data", [b"[]", b"3", b'{"schema_version": 1, "passes": 7}', b'{"passes": [1, {"collectors": 2}]}']
)
def test_what_is_no_manifest_is_refused_as_such(data: bytes) -> None:
    with pytest.raises(msgspec.ValidationError):
        manifest.decode(data)
