"""The log of a pass is cut while it is too large: with files that nobody but the test prints into."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from hwprof.session import bounded_log
from hwprof.session.bounded_log import BoundedLog

BOUND, KEPT, LAST = 4000, 1000, 100


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[BoundedLog]:
    for name, value in (("BOUND_BYTES", BOUND), ("KEPT_BYTES", KEPT), ("LAST_BYTES", LAST)):
        monkeypatch.setattr(bounded_log, name, value)
    made = BoundedLog(tmp_path / "worker.log")
    yield made
    made.close()


def prints(log: BoundedLog, text: str) -> None:
    """As a worker does: through a descriptor that it was given when it was started."""
    os.write(log.fileno(), text.encode())


def test_the_first_and_the_last_words_stay_and_what_is_missing_is_said(log: BoundedLog, tmp_path: Path) -> None:
    prints(log, "begins")
    for _ in range(30):
        prints(log, BOUND * "y")
        log.look(0.0)
        assert (tmp_path / "worker.log").stat().st_size == KEPT + LAST
    prints(log, BOUND * "y" + "it died")
    log.close()
    log.close()
    text = (tmp_path / "worker.log").read_text()
    assert text.startswith("begins") and "\0" not in text
    body, says, _ = text.rsplit("\n", 2)
    assert body.endswith("it died") and len(body) == KEPT + LAST
    assert "were dropped" in says
    assert log.dropped_bytes == len("begins" + "it died") + 31 * BOUND - len(body)


def test_a_log_within_its_bound_is_left_as_it_is(log: BoundedLog, tmp_path: Path) -> None:
    prints(log, BOUND * "y")
    log.look(0.0)
    log.append(" \udc80")
    os.truncate(tmp_path / "worker.log", BOUND)
    log.close()
    assert (tmp_path / "worker.log").read_text() == BOUND * "y" and not log.dropped_bytes


def test_what_is_put_in_its_place_is_neither_cut_nor_written_to(log: BoundedLog, tmp_path: Path) -> None:
    file, others = tmp_path / "worker.log", tmp_path / "thesis.txt"
    others.write_text(2 * BOUND * "x")
    file.unlink()
    file.symlink_to(others)
    prints(log, 2 * BOUND * "y")
    log.append("an error")
    log.close()
    assert log.dropped_bytes and others.read_text() == 2 * BOUND * "x"


def test_it_takes_the_place_of_a_link(tmp_path: Path) -> None:
    file, others = tmp_path / "worker.log", tmp_path / "thesis.txt"
    others.write_text("x")
    file.symlink_to(others)
    made = BoundedLog(file)
    made.append("y")
    made.close()
    assert (others.read_text(), file.read_text(), file.is_symlink()) == ("x", "y", False)


def test_its_thread_ends_with_it(log: BoundedLog) -> None:
    before = set(threading.enumerate())
    log.start()
    log.close()
    assert set(threading.enumerate()) <= before  # one of another test may have ended meanwhile
