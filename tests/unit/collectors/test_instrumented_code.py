"""The machine code of the self-test, and the C module's numbers."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from collectors.instrumented.events import COUNTED, events
from collectors.instrumented.facts import Fact
from collectors.instrumented.machine_code import Loop, keep_registers, loops
from collectors.instrumented.source import module_source
from collectors.shared.symbols.domains import Domain
from tests.support.requirements import require_tool


def assembled(text: str, folder: Path) -> bytes:
    assembler, copier = require_tool("as"), require_tool("objcopy")
    source, linkable, flat = folder / "loop.s", folder / "loop.o", folder / "loop.bin"
    source.write_text(f".intel_syntax noprefix\n{text}")
    subprocess.run([assembler, "--64", "-o", linkable, source], check=True)
    subprocess.run([copier, "-O", "binary", "-j", ".text", linkable, flat], check=True)
    return flat.read_bytes()


@pytest.mark.parametrize("loop", loops(), ids=lambda loop: loop.name)
def test_the_code_of_a_loop_is_what_its_assembly_says(loop: Loop, tmp_path: Path) -> None:
    assert assembled(loop.assembly, tmp_path) == loop.machine_code


@pytest.mark.parametrize("loop", loops(), ids=lambda loop: loop.name)
def test_a_loop_names_facts_that_there_are(loop: Loop) -> None:
    assert {*loop.once, *loop.each} <= {fact.name.lower() for fact in Fact}


def test_a_loops_facts_grow_with_its_rounds() -> None:
    integers = next(loop for loop in loops() if loop.name == "integers")
    assert integers.expected(10)[Fact.INSTRUCTIONS] == 32
    assert integers.expected(10)[Fact.CONDITIONAL_BRANCHES] == 10
    assert integers.expected(10)[Fact.STORES] == 0


@pytest.mark.parametrize("width", [64, 32])
def test_registers_are_loaded_and_stored_each_once(width: int, tmp_path: Path) -> None:
    if width == 64:
        load = [f"vmovups zmm{i}, zmmword ptr [rdi+{64 * i}]" for i in range(32)]
        load += [f"kmovq k{i}, qword ptr [rsi+{8 * i}]" for i in range(8)]
    else:
        load = [f"vmovups ymm{i}, ymmword ptr [rdi+{32 * i}]" for i in range(16)]
    code = keep_registers(width)
    store = [
        f"{name} {memory.replace('rdi', 'rdx').replace('rsi', 'rcx')}, {register}"
        for name, register, memory in ((line.split()[0], *line.partition(" ")[2].split(", ", 1)) for line in load)
    ]

    def semantics(data: bytes) -> list[str]:
        flat = tmp_path / "code.bin"
        flat.write_bytes(data)
        command = [require_tool("objdump"), "-D", "-b", "binary", "-m", "i386:x86-64", "-M", "intel", str(flat)]
        lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
        said = [line.split("\t")[2] for line in lines if line.count("\t") >= 2]
        return [" ".join(text.replace("+0x0]", "]").split()) for text in said]

    kept = [text for text in semantics(code) if text.startswith(("vmovups", "kmovq"))]
    assert kept == semantics(assembled("\n".join([*load, *store]), tmp_path))


def test_the_module_has_a_number_for_every_fact() -> None:
    source = module_source()
    first = source.splitlines()[0]
    assert first == f"enum Fact {{ {', '.join(fact.name for fact in Fact)}, FACTS }};"
    assert [fact.value for fact in Fact] == list(range(len(Fact)))
    reached_by_width = ("_256", "_512")
    for fact in Fact:
        assert source.count(fact.name) > 1 or fact.name.endswith(reached_by_width), f"nothing counts {fact.name}"


def test_widths_follow_one_another() -> None:
    for first in (Fact.FLOPS_FP32_128, Fact.FLOPS_FP64_128, Fact.VECTOR_128):
        assert Fact(first + 1).name == first.name.replace("128", "256")
        assert Fact(first + 2).name == first.name.replace("128", "512")


def test_events_have_distinct_names_that_no_hardware_event_has() -> None:
    names = [event.full_name for event in events()]
    assert len(set(names)) == len(names)
    assert all(name.startswith("instrumented.") for name in names)


def test_every_fact_is_in_an_event() -> None:
    used = {name for event in events() for name in event.facts}
    assert used == {fact.name.lower() for fact in Fact}


def test_waiting_is_in_no_event_but_its_own() -> None:
    waiting = [event.name for event in events() if Domain.OPENMP in event.counted_domains]
    assert waiting == ["instructions-openmp"]
    assert Domain.OWN not in COUNTED


def test_parts_of_the_instructions_add_up_to_them() -> None:
    whole = next(event for event in events() if event.name == "instructions")
    parts = [event for event in events() if event.name.startswith("instructions-") and event.name[13:] != "openmp"]
    assert sorted(domain for part in parts for domain in part.domains) == sorted(whole.counted_domains)
