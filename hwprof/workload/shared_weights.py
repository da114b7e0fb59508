"""Calibrated random weights, handed from the first pass of a run to the later ones.

Calibration takes several forwards and comes to the same weights in every pass. The first pass writes them into a file
without a name (``O_TMPFILE``, inherited as a descriptor), so nobody else can open or replace it and nothing is left
behind, however the run ends. It holds the tensors' bytes alone, in the order of ``state_dict``: nothing in it is
executed or interpreted, and the bytes go straight into the parameters, whose memory is the same as without the file.
"""

from __future__ import annotations

import contextlib
import os
import zlib
from typing import Final

import torch
from torch import nn

from hwprof.errors import HwprofError
from hwprof.workload.sources.kept_frames import KeptFrames

_HEADER_BYTES: Final = 64
"""``format version, CRC of names and shapes, checksum of the prepared weights, whether these were fused``, padded;
zeros until they are valid."""

_VERSION: Final = "hwprof-weights-2"
_FUSED: Final = "fused"
_UNFUSED: Final = "unfused"


class SharedWeights:
    """The weights' file as one pass sees it."""

    def __init__(self, descriptor: int) -> None:
        """``descriptor``: of a file that the passes of one run share; it is not closed here."""
        self._descriptor = descriptor
        self._saved: str | None = None  # CRC of the names and shapes that this pass wrote
        header = os.pread(descriptor, _HEADER_BYTES, 0).rstrip(b"\0").decode("ascii", "replace").split()
        self._header = header if len(header) == 4 and header[0] == _VERSION else None
        self._loaded = False

    @property
    def frames(self) -> KeptFrames:
        """A camera's, in the same file."""
        return KeptFrames(self._descriptor)

    @property
    def available(self) -> bool:
        """Whether an earlier pass left weights."""
        return self._header is not None

    def load(self, module: nn.Module) -> None:
        """Copies the weights into a module of the same structure; raises ``HwprofError`` where they do not fit."""
        if self._header is None or self._header[1] != _structure(module):
            raise HwprofError("the weights that an earlier pass of this run left are another model's")
        position = _HEADER_BYTES
        for buffer in _buffers(module):
            while buffer:
                count = os.preadv(self._descriptor, [buffer], position)
                if not count:
                    raise HwprofError("the weights that an earlier pass of this run left are cut short")
                buffer, position = buffer[count:], position + count
        self._loaded = True

    def save(self, module: nn.Module) -> None:
        """Keeps the module's weights for later passes, once ``confirm`` is called; a full disk leaves none."""
        if not all(tensor.is_contiguous() for tensor in module.state_dict().values()):
            return  # such bytes could not be read back in place
        position = _HEADER_BYTES
        try:
            for buffer in _buffers(module):
                while buffer:
                    count = os.pwrite(self._descriptor, buffer, position)
                    buffer, position = buffer[count:], position + count
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, 0)
            return
        self._saved = _structure(module)

    def confirm(self, checksum: str, *, fused: bool) -> None:
        """Holds the prepared model's weights (their checksum in ``fingerprint``) against those of the pass that saved,
        where both were fused, or neither was.

        Raises ``HwprofError`` where they differ.
        """
        form = _FUSED if fused else _UNFUSED
        if self._saved is not None:
            header = f"{_VERSION} {self._saved} {checksum} {form}".encode("ascii")
            os.pwrite(self._descriptor, header.ljust(_HEADER_BYTES, b"\0"), 0)
        elif self._loaded and self._header is not None and self._header[3] == form and self._header[2] != checksum:
            raise HwprofError(f"the weights {checksum} of this pass are not the first pass's, {self._header[2]}")


def _buffers(module: nn.Module) -> list[memoryview]:
    """The memory of all tensors, in the order of ``state_dict``, as bytes."""
    return [
        memoryview(tensor.detach().reshape(-1).view(torch.uint8).numpy())
        for tensor in module.state_dict().values()
        if tensor.numel()
    ]


def _structure(module: nn.Module) -> str:
    """CRC-32 of names, types and shapes."""
    found = 0
    for name, tensor in module.state_dict().items():
        found = zlib.crc32(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode(), found)
    return f"{found:08x}"
