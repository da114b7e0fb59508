"""Files of a case, which a model's code may have written."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from hwprof.bench.samples import LARGEST_BYTES, LARGEST_SAMPLES_BYTES, SAMPLES, largest_bytes_of, samples_in


def test_only_samples_may_be_larger_than_others() -> None:
    assert largest_bytes_of(SAMPLES.format(17)) == LARGEST_SAMPLES_BYTES
    assert largest_bytes_of("log.txt") == largest_bytes_of("samples.txt") == LARGEST_BYTES


def test_samples_nested_too_deeply_are_no_samples(tmp_path: Path) -> None:
    (tmp_path / SAMPLES.format(1)).write_bytes(b'{"unknown":' + b"[" * 200_000 + b"]" * 200_000 + b"}\n")
    with pytest.raises(msgspec.DecodeError, match="nested too deeply"):
        samples_in(tmp_path)
