"""Whether building what a pickle describes takes no more than its file has: told by building it of nothing first.

A few hundred bytes can describe a key whose hash takes centuries (tuples in tuples that are shared), keys that all have
one hash, or a list that is copied as often as it is named. Tensors need none of this.
"""

from __future__ import annotations

import pickle
import struct
from collections.abc import Callable, Iterable
from typing import IO, Any, ClassVar, Final

MOST_STEPS: Final = 5_000_000
"""Opcodes; a checkpoint of ten thousand tensors has a tenth of them. An object takes some 100 bytes."""

MOST_COPIES: Final = 2_000_000
"""Objects that are taken over from lists, sizes and states: some ten of a tensor."""

MOST_PARTS: Final = 10_000
"""Of a tuple, with those of the tuples in it as often as they occur: so many steps its hash takes."""

MOST_MARKS: Final = 10_000
"""Open at a time."""

MOST_ODD_KEYS: Final = 1000
"""Tuples, and numbers for which others with the same hash are easily found: all of these are compared with each."""

MODULUS: Final = (1 << 61) - 1
"""Integers have their value modulo this as their hash (``sys.hash_info.modulus``)."""

UNNEEDED: Final = (
    pickle.EXT1, pickle.EXT2, pickle.EXT4, pickle.NEXT_BUFFER, pickle.READONLY_BUFFER, pickle.BYTEARRAY8,
)  # fmt: skip
"""No tensor needs them; the last one gets as much memory as it says before anything is read."""


class Nothing:
    """In the place of any class, of any object of it, and of what lies outside of the pickle."""

    __slots__ = ()

    def __new__(cls, *arguments: Any, **keywords: Any) -> Nothing:
        """Takes any arguments, as the class would have."""
        return super().__new__(cls)

    def ignore(self, *arguments: Any) -> None:
        """Whatever is done to it."""

    __setstate__ = __setitem__ = append = extend = add = update = ignore


class Keyed(Nothing):
    """Of a class whose argument has keys, or pairs of a key and a value."""

    __slots__ = ()


KEYED: Final = frozenset({"dict", "set", "frozenset", "OrderedDict", "Counter", "defaultdict"})
"""Their names."""


class Scan(pickle._Unpickler):
    """Does what any other unpickler does, with ``Nothing`` for every name."""

    dispatch: ClassVar[dict[int, Any]] = {}  # opcodes, below
    stack: list[Any]
    metastack: list[list[Any]]
    memo: dict[int, Any]
    read: Callable[[int], bytes]
    readline: Callable[[], bytes]

    def __init__(self, file: IO[bytes]) -> None:
        super().__init__(file, encoding="bytes")
        self._steps = 0
        self._copied = 0
        self._odd_keys = 0
        self._parts: dict[int, tuple[int, tuple[Any, ...]]] = {}  # by id, of tuples that have others in them

    def find_class(self, module: str, name: str) -> Any:
        """The same for nearly any name."""
        return Keyed if name in KEYED else Nothing

    def persistent_load(self, pid: Any) -> Any:
        """Each part of what it names may be looked up. It may be a class."""
        self.keys(pid if isinstance(pid, tuple) else [pid])
        return Nothing

    def step(self) -> None:
        """Another opcode comes."""
        self._steps += 1
        if self._steps > MOST_STEPS:
            raise pickle.UnpicklingError(f"it has more than {MOST_STEPS:,} opcodes")
        if len(self.metastack) > MOST_MARKS:
            raise pickle.UnpicklingError(f"more than {MOST_MARKS:,} of its marks are open at a time")

    def keys(self, found: Iterable[Any]) -> None:
        """Of dictionaries and sets: raises ``UnpicklingError`` where they are none of a checkpoint's."""
        for key in found:
            if key is None or isinstance(key, (str, bytes, type, Nothing)):
                continue
            if not isinstance(key, (int, float, tuple)):
                raise pickle.UnpicklingError(f"a {type(key).__name__} is a key in it")
            if not isinstance(key, int) or abs(key) >= MODULUS:
                self._odd_keys += self.parts(key)
        if self._odd_keys > MOST_ODD_KEYS:
            raise pickle.UnpicklingError(f"more than {MOST_ODD_KEYS:,} keys are tuples, fractions or huge numbers")

    def parts(self, one: Any) -> int:
        """How many steps its hash takes."""
        if not isinstance(one, tuple):
            return 1
        return self._parts[id(one)][0] if id(one) in self._parts else 1 + len(one)

    def new_tuple(self) -> None:
        """The topmost one. It is held, so that no other gets its id."""
        made = self.stack[-1]
        parts = 1 + sum(map(self.parts, made))
        if parts > 1 + len(made):
            self._parts[id(made)] = (parts, made)
            if parts > MOST_PARTS:
                raise pickle.UnpicklingError(f"a tuple in it has more than {MOST_PARTS:,} parts")

    def put(self, place: int) -> None:
        """The memo may be an array: an object at place two billion takes 32 GB of it. Whoever pickles puts one after
        the other."""
        if not 0 <= place < self._steps:
            raise pickle.UnpicklingError(f"it puts object {place} into its memo as the {self._steps}th")
        self.memo[place] = self.stack[-1]

    def call(self, called: Any, given: Iterable[Any]) -> None:
        """It takes over what it is given: a list that is given again and again has to be short."""
        for one in given:
            if not isinstance(one, (list, tuple, dict, set, frozenset)):
                continue
            self._copied += len(one)
            if self._copied > MOST_COPIES:
                raise pickle.UnpicklingError(f"more than {MOST_COPIES:,} objects in it are copies")
            if called is Keyed and isinstance(one, (list, tuple)):
                pairs = [member for member in one if isinstance(member, (list, tuple)) and member]
                self.keys([*(member for member in one if not isinstance(member, list)), *(pair[0] for pair in pairs)])


def scan(file: IO[bytes]) -> None:
    """Raises ``UnpicklingError`` for a pickle that takes more than its file has, before any of it is built, and
    whatever its mistakes lead to. The file stands afterwards where it stood."""
    place = file.tell()
    try:
        Scan(file).load()
    finally:
        file.seek(place)


Step = Callable[[Scan], None]


def _before(look: Step) -> Callable[[Step], Step]:
    """An opcode at whose operands somebody looks first."""

    def around(does: Step) -> Step:
        def step(scan: Scan) -> None:
            look(scan)
            does(scan)

        return step

    return around


def _makes_a_tuple(does: Step) -> Step:
    def step(scan: Scan) -> None:
        does(scan)
        scan.new_tuple()

    return step


def _instead(does: Step) -> Callable[[Step], Step]:
    return lambda _: does


def _refuse(scan: Scan) -> None:
    raise pickle.UnpicklingError("it has what no tensor needs")


def _states(state: Any) -> list[Any]:
    """A state, and the parts of one of a dictionary and slots."""
    return [state, *(state if isinstance(state, tuple) else ())]


def _counted(does: Step) -> Step:
    def step(scan: Scan) -> None:
        scan.step()
        does(scan)

    return step


OTHERWISE: Final[dict[bytes, Callable[[Step], Step]]] = {
    **dict.fromkeys((pickle.TUPLE, pickle.TUPLE1, pickle.TUPLE2, pickle.TUPLE3), _makes_a_tuple),
    **dict.fromkeys(UNNEEDED, _instead(_refuse)),
    pickle.PUT: _instead(lambda scan: scan.put(int(scan.readline()[:-1]))),
    pickle.BINPUT: _instead(lambda scan: scan.put(scan.read(1)[0])),
    pickle.LONG_BINPUT: _instead(lambda scan: scan.put(struct.unpack("<I", scan.read(4))[0])),
    pickle.SETITEM: _before(lambda scan: scan.keys(scan.stack[-2:-1])),
    pickle.SETITEMS: _before(lambda scan: scan.keys(scan.stack[::2])),
    pickle.DICT: _before(lambda scan: scan.keys(scan.stack[::2])),
    pickle.ADDITEMS: _before(lambda scan: scan.keys(scan.stack)),
    pickle.FROZENSET: _before(lambda scan: scan.keys(scan.stack)),
    pickle.REDUCE: _before(lambda scan: scan.call(scan.stack[-2], scan.stack[-1])),
    pickle.NEWOBJ: _before(lambda scan: scan.call(scan.stack[-2], scan.stack[-1])),
    pickle.NEWOBJ_EX: _before(lambda scan: scan.call(scan.stack[-3], [*scan.stack[-2], scan.stack[-1]])),
    pickle.OBJ: _before(lambda scan: scan.call(scan.stack[0], scan.stack[1:])),
    pickle.INST: _before(lambda scan: scan.call(Keyed, scan.stack)),
    pickle.BUILD: _before(lambda scan: scan.call(Nothing, _states(scan.stack[-1]))),
}
"""What opcodes do in a ``Scan`` beside what they do, or in its place."""

_does: Any
for _code, _does in pickle._Unpickler.dispatch.items():
    _otherwise = OTHERWISE.get(bytes([_code]))
    Scan.dispatch[_code] = _counted(_does if _otherwise is None else _otherwise(_does))
