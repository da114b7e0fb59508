from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hwprof.hardware.cores import DEVICES
from hwprof.hardware.pmu import Code, EncodingError, Pmu, find
from tests.support.recorded_machines import TREES, plant


def a_pmu(root: Path, **files: str) -> Pmu:
    folder = root / DEVICES / "cpu"
    for name, text in {"type": "4", **files}.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    return Pmu(folder)


@pytest.mark.parametrize(
    ("tree", "pmu", "terms", "config", "config1"),
    [
        ("intel-sapphire-rapids", "cpu", "event=0xc7,umask=0x80", 0x80C7, 0),
        ("intel-sapphire-rapids", "cpu", "event=0xa3,umask=0x14,cmask=20", 0x140014A3, 0),
        ("intel-sapphire-rapids", "cpu", "event=0x2a,umask=0x1,offcore_rsp=0x730000001", 0x12A, 0x730000001),
        ("intel-sapphire-rapids", "cpu", "mem-loads", 0x1CD, 3),  # the driver's name for event, umask and ldlat
        ("intel-sapphire-rapids", "cpu", "event=0xc0,edge,inv", 0x8400C0, 0),  # switches need no value
        ("intel-arrow-lake", "cpu_core", "event=0x2,umask=0x1234", 0x1200_0000_3402, 0),  # umask in two pieces
        ("amd-zen4", "cpu", "event=0x1a0,umask=0x1", 0x1_0000_01A0, 0),  # event in two pieces
        ("amd-zen2", "amd_df", "event=0x107,umask=0x38", 0x1_0000_3807, 0),
        ("amd-zen4", "amd_umc_0", "event=0x0a,rdwrmask=2", 0x20A, 0),
        ("arm-neoverse-v2", "armv8_pmuv3_0", "event=0x80c0,long", 0x80C0, 1),
        ("arm-neoverse-v2", "armv8_pmuv3_0", "config=0x11", 0x11, 0),
    ],
)
def test_terms_become_what_the_driver_takes(
    tmp_path: Path, tree: str, pmu: str, terms: str, config: int, config1: int
) -> None:
    (found,) = find(plant(tree, tmp_path), pmu)
    assert found.type is not None
    assert found.encode(terms) == Code(found.type, config, config1)


def test_instances_are_those_with_a_number(tmp_path: Path) -> None:
    root = plant("intel-sapphire-rapids", tmp_path)
    assert [pmu.name for pmu in find(root, "uncore_imc")] == ["uncore_imc_0", "uncore_imc_1"]
    assert [pmu.name for pmu in find(root, "uncore_imc_free_running")] == ["uncore_imc_free_running_0"]
    assert [pmu.name for pmu in find(root, "uncore_imc_1")] == ["uncore_imc_1"]
    assert find(root, "amd_umc") == []
    assert find(tmp_path / "empty", "cpu") == []


def test_what_a_named_event_is_worth(tmp_path: Path) -> None:
    (power,) = find(plant("amd-zen4", tmp_path), "power")
    assert power.scale("energy-pkg") == pytest.approx(2**-32)
    assert power.unit("energy-pkg") == "Joules"
    assert power.scale("other") == 1
    assert power.unit("other") is None
    assert set(power.events) == {"energy-pkg"}
    assert power.cpumask == (0,)


@pytest.mark.parametrize(
    ("terms", "says"),
    [
        ("event=0x100", "too large for its field"),
        ("event=x", "no number"),
        ("event=-1", "64 bits"),
        ("colour=3", "no term 'colour'.*event, umask, loads"),
        ("event=1,,=", "no term of an event"),
    ],
)
def test_terms_that_the_pmu_does_not_have_are_refused(tmp_path: Path, terms: str, says: str) -> None:
    pmu = a_pmu(tmp_path, format__event="config:0-7", format__umask="config:8-15", events__loads="event=0x1")
    with pytest.raises(EncodingError, match=says):
        pmu.encode(terms)


def test_a_pmu_without_a_type_cannot_be_asked(tmp_path: Path) -> None:
    (tmp_path / DEVICES / "cpu").mkdir(parents=True)
    with pytest.raises(EncodingError, match="no type in sysfs"):
        Pmu(tmp_path / DEVICES / "cpu").encode("event=1")


@st.composite
def formats(draw: st.DrawFn) -> dict[str, str]:
    """Terms in disjoint fields of the three words, in one to three pieces each."""
    free = {word: list(draw(st.permutations(range(0, 64, 4)))) for word in ("config", "config1", "config2")}
    found = {}
    for name in draw(st.lists(st.from_regex(r"[a-z]{1,6}", fullmatch=True), min_size=1, max_size=5, unique=True)):
        word = draw(st.sampled_from(sorted(free)))
        pieces = []
        for _ in range(draw(st.integers(1, 3))):
            if free[word]:
                start = free[word].pop()
                pieces.append((start, start + draw(st.integers(0, 3))))
        if pieces and name not in ("config",):
            pieces.sort()
            found[name] = f"{word}:" + ",".join(str(a) if a == b else f"{a}-{b}" for a, b in pieces)
    return found


def width(place: str) -> int:
    ranges = [part.partition("-") for part in place.partition(":")[2].split(",")]
    return sum(int(last or first) - int(first) + 1 for first, _, last in ranges)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_what_is_scattered_is_gathered_again(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    places = data.draw(formats())
    pmu = a_pmu(tmp_path_factory.mktemp("pmu"), **{f"format__{name}": place for name, place in places.items()})
    values = {name: data.draw(st.integers(0, (1 << width(place)) - 1)) for name, place in places.items()}
    code = pmu.encode(",".join(f"{name}={value:#x}" for name, value in values.items()))
    assert {name: pmu.gather(name, code) for name in places} == values
    assert pmu.gather("missing", code) == 0


def test_every_format_of_every_tree_can_be_filled(tmp_path: Path) -> None:
    """No driver's description is beyond the parser: all bits of each field come back."""
    for tree in sorted(TREES.glob("*.txt")):
        root = plant(tree.stem, tmp_path / tree.stem)
        for folder in sorted((root / DEVICES).iterdir()):
            pmu = Pmu(folder)
            for name, place in pmu.formats.items():
                full = (1 << width(place)) - 1
                assert pmu.gather(name, pmu.encode(f"{name}={full:#x}")) == full, (tree.stem, folder.name, name)
