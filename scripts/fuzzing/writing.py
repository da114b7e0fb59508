"""Writes a random sequence: a function in assembly, with what each of its instructions does."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import msgspec

from hwprof.data_files import read_toml

Facts = dict[str, int]
Branch: TypeAlias = Callable[["Writing", int], None]

NAMED: Final = ("rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp")
NUMBERED: Final = ("r8", "r9", "r10", "r11")
FREE: Final = NAMED + NUMBERED
"""What sequences compute with. r15 is where their memory begins, r13 a small index into it; r12 and r14 count loops."""

LOOP_COUNTERS: Final = ("r12", "r14")
CONDITIONS: Final = ("o", "no", "b", "ae", "e", "ne", "be", "a", "s", "ns", "p", "np", "l", "ge", "le", "g")
SIZES: Final = {1: "byte", 2: "word", 4: "dword", 8: "qword", 10: "tbyte", 16: "xmmword", 32: "ymmword", 64: "zmmword"}

POOL_BYTES: Final = 256
"""Of each sequence, beside its code."""

FLAGS_AT: Final = 1400
"""Where a sequence leaves the flags, from r15."""

POINTERS: Final = 8
"""Words at the pool's beginning that hold addresses of code."""

REPEATS: Final = ("rep", "repe", "repne")
STRINGS: Final = {"movs": (1, 1), "stos": (0, 1), "lods": (1, 0), "cmps": (2, 0), "scas": (1, 0)}
"""What a round loads and stores, in elements."""

ELEMENTS: Final = {"b": 1, "w": 2, "q": 8}
"""Their bytes."""

RETURN: Final = {"returns": 1, "loads": 1, "load_bytes": 8}
CALL: Final = {"calls": 1, "stores": 1, "store_bytes": 8}
BRANCH: Final = {"conditional_branches": 1}


class Group(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Instructions of a kind; see ``instructions.toml``."""

    name: str
    texts: tuple[str, ...]
    needs: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()


class _File(msgspec.Struct, forbid_unknown_fields=True):
    group: tuple[Group, ...]


def groups(flags: Collection[str]) -> list[Group]:
    """Those that a processor with these flags executes."""
    return [group for group in read_toml(__name__, "instructions.toml", _File).group if set(group.needs) <= set(flags)]


def narrow(register: str, size: int) -> str:
    """The name of the register's lower ``size`` bytes."""
    if register in NUMBERED:
        return register + {1: "b", 2: "w", 4: "d", 8: ""}[size]
    if size == 8:
        return register
    if size == 4:
        return "e" + register[1:]
    if size == 2:
        return register[1:]
    return register[1] + "l" if register[2] == "x" else register[1:] + "l"


@dataclass
class Writing:
    """One sequence being written. Instructions are numbered in the order of their addresses."""

    number: int
    random: random.Random
    groups: Sequence[Group]
    branches: Sequence[Branch]  # ways from block to block
    simple: Sequence[Branch]  # those that no body is nested in
    lines: list[str] = field(default_factory=list)
    facts: list[Facts] = field(default_factory=list)
    pointers: list[tuple[int, str]] = field(default_factory=list)
    functions: list[tuple[str, int]] = field(default_factory=list)
    labels: int = 0

    # --- parts

    def label(self) -> str:
        """A new one."""
        self.labels += 1
        return f"L{self.number}_{self.labels}"

    def put_label(self, label: str) -> None:
        """It stands here."""
        self.lines.append(f"{label}:")

    def put(self, text: str, **facts: int) -> None:
        """One instruction."""
        self.lines.append(f"I{self.number}_{len(self.facts)}: {text}")
        self.facts.append({"instructions": 1, **facts})

    def forget_flags(self) -> None:
        """By the calling convention they hold nothing after calls and returns, and Stalker loses the overflow flag at
        these and at indirect branches."""
        self.put("cmp r15, r13")

    def pointer(self, label: str) -> str:
        """The operand of a word in the pool that holds the label's address."""
        slot = len(self.pointers) % POINTERS
        if len(self.pointers) < POINTERS:
            self.pointers.append((slot, label))
        else:
            label = self.pointers[slot][1]
        return f"qword ptr [rip+P{self.number}+{8 * slot}]"

    def address(self, size: int) -> str:
        """Somewhere in the sequence's memory: beside its code, or where r15 points."""
        way = self.random.randrange(8)
        if way == 0:
            room = POOL_BYTES - 8 * POINTERS - size
            return f"[rip+P{self.number}+{8 * POINTERS + self.random.randrange(room)}]"
        if way == 1:
            return f"[r15+r13*{self.random.choice((1, 2, 4, 8))}+{self.random.randrange(512)}]"
        return f"[r15+{self.random.randrange(-128, 900) if size < 64 else 64 * self.random.randrange(15)}]"

    def fill(self, text: str, free: Sequence[str]) -> None:
        """One instruction of a group's text, its operands chosen."""
        body, _, given = text.partition(";")
        facts: Facts = {name: int(value) for name, value in (pair.split("=") for pair in given.split())}

        def operand(match: re.Match[str]) -> str:
            kind = match[1]
            if memory := re.fullmatch(r"(load|store|both)(\d+)", kind):
                size = int(memory[2])
                for way in ("load", "store"):
                    if memory[1] in (way, "both"):
                        facts[f"{way}s"] = facts.get(f"{way}s", 0) + 1
                        facts[f"{way}_bytes"] = facts.get(f"{way}_bytes", 0) + size
                return f"{SIZES[size]} ptr {self.address(size)}"
            return self.operand(kind, free)

        filled = re.sub(r"<(\w+)>", operand, body.strip())
        self.put(filled, **(facts | _beside_operands(body, facts)))

    def operand(self, kind: str, free: Sequence[str]) -> str:
        """One that is no access to memory."""
        if kind in ("r8", "r16", "r32", "r64"):
            return narrow(self.random.choice(free), int(kind[1:]) // 8)
        if kind in ("m", "m4"):
            return self.address(8)
        if kind == "cc":
            return self.random.choice(CONDITIONS)
        if kind == "k":
            return f"k{self.random.randrange(1, 8)}"
        if kind in ("imm8", "imm32"):
            return str(self.random.randrange(1, 100 if kind == "imm8" else 1 << 30))
        registers = 32 if kind == "z" or kind.endswith("32") else 16
        return f"{kind[0]}mm{self.random.randrange(registers)}"

    # --- bodies

    def straight(self, count: int, free: Sequence[str], keep: Collection[str] = ()) -> None:
        """Instructions without a branch that leave the registers in ``keep`` alone."""
        kinds = [group for group in self.groups if not set(group.changes) & set(keep)]
        free = [register for register in free if register not in keep]
        for _ in range(count):
            for text in self.random.choice(self.random.choice(kinds).texts).split("|"):
                self.fill(text, free)

    def body(self, depth: int) -> None:
        """Instructions and, while ``depth`` lasts, branches around further bodies."""
        for _ in range(self.random.randrange(2, 5)):
            self.straight(self.random.randrange(1, 5), FREE)
            if depth > 0 and self.random.random() < 0.75:
                self.random.choice(self.branches)(self, depth)

    def write(self) -> None:
        """The whole: a function, and those that it calls."""
        self.lines += [".balign 64", f"S{self.number}:"]
        self.forget_flags()
        self.body(2)
        self.put("pushfq", stores=1, store_bytes=8)
        self.put(f"pop qword ptr [r15+{FLAGS_AT}]", loads=1, load_bytes=8, stores=1, store_bytes=8)
        self.put("ret", **RETURN)
        while self.functions:
            name, depth = self.functions.pop()
            self.put_label(name)
            self.forget_flags()
            self.straight(self.random.randrange(1, 6), FREE)
            if depth > 0:
                self.random.choice(self.simple)(self, 0)
            self.put("ret", **RETURN)

    def function(self, depth: int) -> str:
        """The name of one that will follow."""
        name = self.label()
        self.functions.append((name, depth - 1))
        return name


def _beside_operands(text: str, facts: Facts) -> Facts:
    """What an instruction does to memory beside its operands: to the stack, and as one of strings."""
    words = text.split()
    name = words[1] if words[0] in (*REPEATS, "lock") else words[0]
    loads, stores = facts.pop("loads", 0), facts.pop("stores", 0)
    load_bytes, store_bytes = facts.pop("load_bytes", 0), facts.pop("store_bytes", 0)
    if name in ("push", "pushfq", "enter"):
        stores, store_bytes = stores + 1, store_bytes + 8
    if name in ("pop", "leave"):
        loads, load_bytes = loads + 1, load_bytes + 8
    if words[-1] == name and name[:-1] in STRINGS:
        (reads, writes), size = STRINGS[name[:-1]], ELEMENTS[name[-1]]
        loads, stores, rounds = reads, writes, facts.pop("rounds", 1)
        load_bytes, store_bytes = reads * size * rounds, writes * size * rounds
    if "[rsp" in text and name in ("and", "mov"):
        reads, writes = (name == "and" or "ptr" in text.partition(",")[2]), "ptr" in text.partition(",")[0]
        loads, load_bytes = loads + reads, load_bytes + 8 * reads
        stores, store_bytes = stores + writes, store_bytes + 8 * writes
    return {"loads": loads, "stores": stores, "load_bytes": load_bytes, "store_bytes": store_bytes}
