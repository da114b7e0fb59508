"""Pickles by their grammar: programs that keep the stack as the opcodes want it, and call what they should not."""

from __future__ import annotations

import struct
from random import Random
from typing import Final

GLOBALS: Final = (
    ("os", "system"), ("posix", "system"), ("subprocess", "Popen"), ("builtins", "eval"), ("builtins", "exec"),
    ("builtins", "__import__"), ("builtins", "open"), ("builtins", "getattr"), ("builtins", "setattr"),
    ("builtins", "set"), ("__builtin__", "set"), ("builtins", "dict"), ("builtins", "list"), ("builtins", "bytearray"),
    ("builtins", "print"), ("builtins", "input"), ("pickle", "loads"), ("torch", "load"),
    ("torch.serialization", "load"),
    ("torch._utils", "_rebuild_tensor_v2"), ("torch._utils", "_rebuild_parameter"), ("torch._utils", "_rebuild_tensor"),
    ("torch", "Size"), ("torch", "device"), ("torch", "FloatStorage"), ("torch", "HalfStorage"), ("torch", "_C"),
    ("torch.nn.modules.linear", "Linear"), ("torch.nn.modules.container", "Sequential"), ("torch.hub", "load"),
    ("collections", "OrderedDict"), ("collections", "deque"), ("functools", "partial"), ("operator", "attrgetter"),
    ("models.yolo", "Model"), ("hwprof.workload.unpickle", "load"), ("hwprof.workload.unpickle", "_ALLOWED"),
    ("torch.storage", "_load_from_bytes"), ("torch.storage", "UntypedStorage"), ("copyreg", "_reconstructor"),
    ("torch._utils", "_rebuild_tensor_v2.__globals__"), ("torch.jit", "load"), ("shutil", "rmtree"), ("", ""),
    ("os\nsystem", "x"), ("numpy.core.multiarray", "_reconstruct"), ("numpy", "dtype"), ("_codecs", "encode"),
)  # fmt: skip
TEXTS: Final = (
    "touch escaped", "escaped", "0", "0.weight", "storage", "module", "cpu", "__globals__", "__code__", "__dict__",
    "_parameters", "_modules", "_buffers", "\x1b[31m", "model", "ema", "state_dict", "x" * 3000,
    "import os; os.system('touch escaped')",
)  # fmt: skip
NUMBERS: Final = (0, 1, 4, 16, -1, 255, 1 << 31, (1 << 31) - 1, 1 << 40)

MOST_STEPS: Final = 40


def program(random: Random) -> tuple[str, bytes]:
    """What it does, in short, and its bytes."""
    writer = _Writer(random)
    for _ in range(random.randrange(1, MOST_STEPS)):
        writer.step()
    made = writer.finished()
    if random.random() < 0.2:
        place = random.randrange(len(made))
        made = made[:place] + bytes([random.randrange(256)]) + made[place + 1 :]
    if random.random() < 0.1:
        made = made[: random.randrange(len(made))]
    return " ".join(writer.said)[:200], made


class _Writer:
    """Holds how many values lie on the stack, so that most programs come to their end."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._depth = 0
        self._memo = 0
        self._bytes = bytearray(b"\x80" + bytes([random.choice((2, 3, 4, 5))]))
        self.said: list[str] = []

    def finished(self) -> bytes:
        """With one value left, mostly."""
        if not self._depth:
            self._value()
        if self._random.random() < 0.5:
            self._bytes += b"\x85" if self._depth < 2 else b""
        while self._depth > 1 and self._random.random() < 0.97:
            self._bytes += b"\x86" if self._random.random() < 0.5 else b"0"  # a pair of both, or the last one away
            self._depth -= 1
        return bytes(self._bytes + b".")

    def step(self) -> None:
        """One more operation that the stack allows."""
        steps = [self._value, self._value, self._global, self._remember]
        if self._depth >= 1:
            steps += [self._persistent, self._single, self._again, self._build_empty, self._doubled, self._given_often]
        if self._depth >= 2:
            steps += [self._pair, self._reduce, self._reduce, self._reduce, self._build, self._new_object, self._append]
        if self._depth >= 3:
            steps += [self._item, self._new_object_with_names, self._storage]
        self._random.choice(steps)()

    def _put(self, code: bytes, change: int, said: str = "") -> None:
        self._bytes += code
        self._depth += change
        if said:
            self.said.append(said)

    def _value(self) -> None:
        kind = self._random.randrange(8)
        if kind == 0:
            self._text(self._random.choice(TEXTS))
        elif kind == 1:
            self._put(b"J" + struct.pack("<i", max(-(1 << 31), min((1 << 31) - 1, self._random.choice(NUMBERS)))), 1)
        elif kind == 2:
            self._put(b"\x8a\x06" + self._random.choice(NUMBERS).to_bytes(6, "little", signed=True), 1)
        else:
            self._put(
                self._random.choice((b"N", b"\x88", b"]", b"}", b")", b"\x8f", b"G" + struct.pack(">d", 1e300))), 1
            )

    def _doubled(self) -> None:
        """A pair of it with itself, and so on, and sometimes as a key: its hash takes two to the power of that."""
        at = self._place()
        pair = b"q" + at + (b"h" + at + b"\x86q" + at) * self._random.choice((2, 20, 60))
        key = self._random.choice((b"", b"}h" + at + b"Ns0", b"\x8f(h" + at + b"\x900"))
        self._put(pair + key, 0, "doubled")

    def _given_often(self) -> None:
        """A long list, of numbers of which all have one hash, to many sets or dictionaries."""
        numbers = b"".join(
            b"\x8a\x0a" + (k * ((1 << 61) - 1)).to_bytes(10, "little") for k in range(self._random.choice((3, 5000)))
        )
        to = self._random.choice((b"c__builtin__\nset\n", b"ccollections\nOrderedDict\n", b"cmodels.yolo\nModel\n"))
        times = self._random.choice((1, 3000))
        at = self._place()
        call = to + b"(h" + at + b"tR"
        self._put(b"((" + numbers + b"lq" + at + b"0" + call * times + b"l", 1, "given often")

    def _place(self) -> bytes:
        """The next one of the memo."""
        self._memo = min(self._memo + 1, 200)
        return bytes([self._memo - 1])

    def _text(self, text: str) -> None:
        data = text.encode("utf-8", "surrogatepass")
        self._put(b"X" + struct.pack("<I", len(data)) + data, 1)

    def _global(self) -> None:
        module, name = self._random.choice(GLOBALS)
        if self._random.random() < 0.5:
            self._put(b"c" + f"{module}\n{name}\n".encode(), 1, f"{module}.{name}")
        else:
            self._text(module)
            self._text(name)
            self._put(b"\x93", -1, f"{module}.{name}")

    def _remember(self) -> None:
        if self._depth and self._memo < 200:
            self._put(b"q" + bytes([self._memo]), 0)
            self._memo += 1
        else:
            self._value()

    def _again(self) -> None:
        if self._memo and self._random.random() < 0.7:
            self._put(b"h" + bytes([self._random.randrange(self._memo)]), 1)
        else:
            self._put(b"2", 1)

    def _persistent(self) -> None:
        self._put(b"Q", 0, "persistent")

    def _single(self) -> None:
        self._put(b"\x85", 0)

    def _pair(self) -> None:
        self._put(b"\x86", -1)

    def _item(self) -> None:
        self._put(b"s", -2)

    def _append(self) -> None:
        self._put(b"a", -1)

    def _reduce(self) -> None:
        """Calls what lies below the last value, which becomes a tuple where it is none."""
        self._put(self._random.choice((b"R", b"\x85R", b"\x85R")), -1, "call")

    def _build(self) -> None:
        self._put(b"b", -1, "build")

    def _build_empty(self) -> None:
        self._put(b"}b", 0, "build")

    def _new_object(self) -> None:
        self._put(b"\x85\x81", -1, "new")

    def _new_object_with_names(self) -> None:
        self._put(b"\x92", -2, "new")

    def _storage(self) -> None:
        """A tensor as torch stores it, of odd sizes."""
        pick = self._random.choice
        self._put(b"ctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storage", 0, "tensor")
        self._bytes += pick((b"ctorch\nFloatStorage\n", b"ctorch\nHalfStorage\n", b"cos\nsystem\n", b"N"))
        for text in (pick(("0", "1", "../0")), pick(("cpu", "cuda:0", "meta"))):
            self._bytes += b"X" + struct.pack("<I", len(text)) + text.encode()
        self._bytes += b"\x8a\x06" + pick(NUMBERS).to_bytes(6, "little", signed=True) + b"tQ"
        self._bytes += b"J" + struct.pack("<i", pick((0, 1, -1, 1 << 30)))
        for _ in range(2):  # sizes, strides
            first, second = (pick((0, 1, 4, 1 << 20, -1, (1 << 31) - 1)) for _ in range(2))
            self._bytes += b"J" + struct.pack("<i", first) + b"J" + struct.pack("<i", second) + b"\x86"
        self._put(b"\x89ccollections\nOrderedDict\n)RtR", 1)
