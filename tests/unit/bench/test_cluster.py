"""What the process that has Ray in it says, and who says nothing."""

from __future__ import annotations

import os

import msgspec
import pytest

from hwprof.bench import cluster
from hwprof.bench.cluster_messages import Kept, Machines, Refused
from hwprof.errors import HwprofError


def heard(data: bytes) -> list[object]:
    read, write = os.pipe()
    os.write(write, data)
    os.close(write)
    with os.fdopen(read, "rb") as messages:
        return list(cluster._heard(messages, "here:1"))


def test_messages_are_lines_and_what_was_cut_is_none() -> None:
    said = [Machines(2), Kept("a"), Refused("no", None)]
    lines = b"".join(msgspec.json.encode(one) + b"\n" for one in said)
    assert heard(lines) == said
    assert heard(lines[:-3]) == said[:2]
    assert heard(b"") == []


def test_one_that_accepts_and_never_answers_is_no_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "CONNECTS_S", 0.1)
    read, write = os.pipe()
    with os.fdopen(read, "rb") as messages, pytest.raises(HwprofError, match="no Ray cluster at here:1: nothing"):
        next(cluster._heard(messages, "here:1"))
    os.close(write)
