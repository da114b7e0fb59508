"""torch's own unpickler of tensors alone, which reads nothing that is not scanned before."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

from torch import _weights_only_unpickler as of_torch

from hwprof.workload.pickle_scan import scan


class Unpickler(of_torch.Unpickler):
    """In the place of torch's."""

    def __init__(self, file: IO[bytes], **options: Any) -> None:
        super().__init__(file, **options)
        self._file = file

    def load(self) -> Any:
        """Raises ``UnpicklingError`` before anything is built for what would take more than the file has."""
        scan(self._file)
        return super().load()  # type: ignore[no-untyped-call]


@contextmanager
def scanned() -> Iterator[None]:
    """Within it ``torch.load(weights_only=True)`` scans first; it takes no other unpickler than its own."""
    usual, place = of_torch.Unpickler, vars(of_torch)
    place["Unpickler"] = Unpickler
    try:
        yield
    finally:
        place["Unpickler"] = usual
