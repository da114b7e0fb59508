"""When the passes of a run are told of."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hwprof.session import supervisor
from tests.support.synthetic_run import build


@pytest.mark.parametrize(
    ("times_from", "order"),
    [
        ([None, None, "measure"], ["0", "1", "timed", "2", "measured"]),
        ([None, "measure", "measure"], ["0", "timed", "1", "2", "measured"]),
        ([None, "measure", None], ["0", "1", "2", "measured"]),
        ([None], ["0", "measured"]),
        (["measure"], ["0", "measured"]),
    ],
)
def test_it_is_told_when_no_pass_is_left_whose_times_count(
    times_from: list[str | None], order: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []

    class Pass:
        def __init__(self, _: object, plan: Any, first: bool) -> None:
            self.plan = plan

        def carry_out(self, _: object, when_measured: Callable[[], None]) -> None:
            said.append(self.plan.name)
            when_measured()

        def prepare(self) -> None: ...
        def heed(self) -> None: ...
        def end(self) -> None: ...

    monkeypatch.setattr(supervisor, "Pass", Pass)
    monkeypatch.setattr(supervisor, "recorded", lambda *_: nullcontext())
    plans = [SimpleNamespace(name=str(number), times_from=name) for number, name in enumerate(times_from)]
    supervisor.carry_out(
        build(tmp_path), cast(Any, None), cast(Any, plans), cast(Any, None), None,
        lambda: said.append("timed"), lambda: said.append("measured"),
    )  # fmt: skip
    assert said == order
