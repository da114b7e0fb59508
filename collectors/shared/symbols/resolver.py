"""From addresses to kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from collectors.shared.symbols.demangle import demangle
from collectors.shared.symbols.domains import Domain
from collectors.shared.symbols.jit import Known
from collectors.shared.symbols.kallsyms import FIRST_ADDRESS, KERNEL_LIBRARY, KernelSymbols, kernel_symbols
from collectors.shared.symbols.kernels import UNKNOWN, Kernel
from collectors.shared.symbols.library import NO_LIBRARY, Library, as_address, image_library, open_library
from collectors.shared.symbols.mappings import VDSO, Mapping
from collectors.shared.symbols.ranges import NONE, Addresses, Numbers, Ranges
from collectors.shared.symbols.shorten import shorten


class Resolver:
    """Names the code of one process. Libraries are opened when an address of theirs is asked for.

    ``known``: places that need no file; of those that overlap the last one is right, as a perf map may name an address
    twice. ``vdso``: its bytes.
    """

    def __init__(
        self,
        mappings: Sequence[Mapping],
        known: Sequence[Known] = (),
        *,
        vdso: bytes = b"",
        kernel: Callable[[], KernelSymbols] = kernel_symbols,
    ) -> None:
        self._mappings, self._mapped = mappings, _ranges(mappings)
        self._known, self._known_ranges = known, _ranges(known)
        self._vdso = vdso
        self._kernel_symbols = kernel

    def resolve(self, addresses: Addresses) -> tuple[Numbers, list[Kernel]]:
        """For each address the number of its kernel, and the kernels. No address is left out: what the process has no
        code for is ``UNKNOWN``."""
        distinct, which = np.unique(addresses, return_inverse=True)
        naming = _Naming(len(distinct))
        places = self._name_known(distinct, np.arange(len(distinct)), naming)
        places = self._name_kernel_space(distinct, places, naming)
        mapped = self._mapped.find(distinct[places])
        for number in np.unique(mapped[mapped != NONE]).tolist():
            self._name_mapped(self._mappings[self._mapped.owners[number]], distinct, places[mapped == number], naming)
        nowhere = places[mapped == NONE]
        naming.name(nowhere, np.zeros_like(nowhere), lambda _: UNKNOWN)
        return naming.numbers[which], list(naming.kernels)

    def kernel_at(self, address: int) -> Kernel:
        """Of one address."""
        _, kernels = self.resolve(np.array([address], dtype=np.uint64))
        return kernels[0]

    def _name_known(self, addresses: Addresses, places: Numbers, naming: _Naming) -> Numbers:
        found = self._known_ranges.find(addresses[places])
        inside = found != NONE
        owners = self._known_ranges.owners
        naming.name(places[inside], owners[found[inside]], lambda number: self._known[number].kernel)
        return np.asarray(places[~inside])

    def _name_kernel_space(self, addresses: Addresses, places: Numbers, naming: _Naming) -> Numbers:
        inside = addresses[places] >= np.uint64(FIRST_ADDRESS)
        if inside.any():
            symbols = self._kernel_symbols()

            def kernel(number: int) -> Kernel:
                if number == NONE:
                    return Kernel(Domain.KERNEL, KERNEL_LIBRARY, None)
                return Kernel(Domain.KERNEL, symbols.module(number), symbols.name(number))

            naming.name(places[inside], symbols.find(addresses[places[inside]]), kernel)
        return places[~inside]

    def _name_mapped(self, mapping: Mapping, addresses: Addresses, places: Numbers, naming: _Naming) -> None:
        domain, library = mapping.domain, mapping.library
        file = self._library(mapping)
        begin = file.address(mapping.offset)
        if begin is None:
            found = np.full(len(places), NONE, dtype=np.int64)
        else:
            found = file.symbols.find(addresses[places] - np.uint64(mapping.start) + np.uint64(begin))

        def kernel(number: int) -> Kernel:
            if number == NONE or begin is None:
                return Kernel(domain, library, None)
            address = as_address(int(file.symbols.starts[number]) - begin + mapping.start)
            return named(domain, library, file.symbols.name(number), address)

        naming.name(places, found, kernel)

    def _library(self, mapping: Mapping) -> Library:
        if mapping.path == VDSO:
            return image_library(self._vdso)
        return open_library(mapping.file) if mapping.file is not None else NO_LIBRARY


def named(domain: Domain, library: str, symbol: str, address: int | None = None) -> Kernel:
    """A function, by its name as the file has it."""
    full = demangle(symbol)
    short = shorten(full)
    return Kernel(domain, library, short, full if full != short else None, address)


class _Naming:
    """Gathers the numbers of kernels; a kernel that is met again has its number."""

    def __init__(self, addresses: int) -> None:
        self.numbers: Numbers = np.full(addresses, NONE, dtype=np.int64)
        self.kernels: dict[Kernel, int] = {}

    def name(self, places: Numbers, keys: npt.NDArray[np.int64], kernel_of: Callable[[int], Kernel]) -> None:
        """``keys``: for each of the places what ``kernel_of`` knows its kernel by."""
        if len(places):
            distinct, which = np.unique(keys, return_inverse=True)
            numbers = [self.kernels.setdefault(kernel_of(key), len(self.kernels)) for key in distinct.tolist()]
            self.numbers[places] = np.array(numbers, dtype=np.int64)[which]


def _ranges(places: Sequence[Mapping] | Sequence[Known]) -> Ranges:
    return Ranges.of(
        np.array([place.start for place in places], dtype=np.uint64),
        np.array([place.end for place in places], dtype=np.uint64),
    )
