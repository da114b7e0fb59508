"""Ways from one basic block to the next. Each takes the sequence and how deep bodies may still be nested."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from scripts.fuzzing.writing import BRANCH, CALL, CONDITIONS, FREE, LOOP_COUNTERS, POINTERS, RETURN, Branch, Writing


def skip(made: Writing, depth: int) -> None:
    """A conditional branch forward."""
    after = made.label()
    made.put(f"j{made.random.choice(CONDITIONS)} {after}", **BRANCH)
    made.body(depth - 1) if depth > 0 else made.straight(2, FREE)
    made.put_label(after)


def red_zone(made: Writing, depth: int) -> None:
    """Something is kept below the stack's end, as functions do that call nobody, over a branch and another block."""
    slot, after = made.random.randrange(24, 129), made.label()
    made.put(f"mov qword ptr [rsp-{slot}], {made.random.choice(FREE)}", stores=1, store_bytes=8)
    made.straight(2, FREE)
    made.put(f"j{made.random.choice(CONDITIONS)} {after}", **BRANCH)
    made.straight(2, FREE)
    made.put_label(after)
    made.put(f"mov {made.random.choice(FREE)}, qword ptr [rsp-{slot}]", loads=1, load_bytes=8)


def skip_on_rcx(made: Writing, depth: int) -> None:
    """jrcxz or jecxz forward, with rcx zero, small, or zero in its lower half only."""
    value = made.random.choice(("0", "1", "0x100000000", "0x500000000"))
    if made.random.random() < 0.7:
        made.put(f"movabs rcx, {value}")
    after = made.label()
    made.put(f"{made.random.choice(('jrcxz', 'jecxz'))} {after}", **BRANCH)
    made.straight(3, FREE)
    made.put_label(after)


def jump(made: Writing, depth: int) -> None:
    """An unconditional branch over code that is never executed, by any kind of operand."""
    target = made.label()
    way = made.random.randrange(5)
    if way == 0:
        made.put(f"jmp {target}", jumps=1)
    elif way == 1:
        made.put(f"lea rax, [rip+{target}]")
        made.put("jmp rax", jumps=1)
    elif way == 2 and len(made.pointers) < POINTERS:
        made.put(f"jmp {made.pointer(target)}", jumps=1, loads=1, load_bytes=8)
    elif way == 3:
        made.put(f"lea rdx, [rip+{target}]")
        made.put("push rdx", stores=1, store_bytes=8)
        made.put("ret", **RETURN)
    else:
        made.put(f"lea rbx, [rip+{target}]")
        made.put("mov qword ptr [r15+r13*8+1000], rbx", stores=1, store_bytes=8)
        made.put("jmp qword ptr [r15+r13*8+1000]", jumps=1, loads=1, load_bytes=8)
    made.put("ud2")
    made.put_label(target)
    if way != 0:
        made.forget_flags()


def call(made: Writing, depth: int) -> None:
    """A function, by any kind of operand."""
    name = made.function(depth)
    way = made.random.randrange(5)
    if way == 0 or (way == 2 and len(made.pointers) == POINTERS):
        made.put(f"call {name}", **CALL)
    elif way == 1:
        register = made.random.choice(FREE)
        made.put(f"lea {register}, [rip+{name}]")
        made.put(f"call {register}", **CALL)
    elif way == 2:
        made.put(f"call {made.pointer(name)}", **CALL, loads=1, load_bytes=8)
    elif way == 3:
        made.put(f"lea r8, [rip+{name}]")
        made.put("push r8", stores=1, store_bytes=8)
        made.put("call qword ptr [rsp]", **CALL, loads=1, load_bytes=8)
        made.put("pop r8", loads=1, load_bytes=8)
    else:
        made.put(f"lea r9, [rip+{name}]")
        made.put("mov qword ptr [r15+r13*4+1100], r9", stores=1, store_bytes=8)
        made.put("call qword ptr [r15+r13*4+1100]", **CALL, loads=1, load_bytes=8)
    made.forget_flags()


def call_and_drop(made: Writing, depth: int) -> None:
    """Arguments on the stack that the function drops, and a frame by enter and leave."""
    name, after = made.label(), made.label()
    made.put("push 7", stores=1, store_bytes=8)
    made.put(f"call {name}", **CALL)
    made.put(f"jmp {after}", jumps=1)
    made.put_label(name)
    made.forget_flags()
    made.put("enter 32, 0", stores=1, store_bytes=8)
    made.straight(2, FREE, keep=("rbp",))
    made.put("leave", loads=1, load_bytes=8)
    made.put("ret 8", **RETURN)
    made.put_label(after)
    made.forget_flags()


def next_address(made: Writing, depth: int) -> None:
    """A call of the next instruction, for its address."""
    after = made.label()
    made.put(f"call {after}", **CALL)
    made.put_label(after)
    made.put(f"pop {made.random.choice(FREE)}", loads=1, load_bytes=8)
    made.forget_flags()


def loop(made: Writing, depth: int) -> None:
    """A few rounds around a body, counted in a register of its own."""
    counter, again = LOOP_COUNTERS[depth % 2], made.label()
    made.put(f"mov {counter}, {made.random.randrange(1, 6)}")
    made.put_label(again)
    made.body(depth - 1) if depth > 0 else made.straight(2, FREE)
    made.put(f"dec {counter}")
    made.put(f"jnz {again}", **BRANCH)


def loop_on_rcx(made: Writing, depth: int) -> None:
    """loop, loope and loopne, on rcx or ecx; the latter two may end early."""
    again, name = made.label(), made.random.choice(("loop", "loope", "loopne"))
    prefix = made.random.choice(("", "addr32 "))
    upper = made.random.choice((0, 1 << 40)) if prefix else 0
    made.put(f"movabs rcx, {upper + made.random.randrange(1, 9)}")
    made.put_label(again)
    made.straight(made.random.randrange(1, 4), FREE, keep=("rcx",))
    made.put(f"{prefix}{name} {again}", **BRANCH)


SIMPLE: Final[Sequence[Branch]] = (skip, red_zone, skip_on_rcx, jump, next_address, loop_on_rcx)
BRANCHES: Final[Sequence[Branch]] = (*SIMPLE, call, call_and_drop, loop)
