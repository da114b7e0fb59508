"""Which remedies are asked for."""

from __future__ import annotations

import pytest

from hwprof.cli.try_remedies import _asked
from hwprof.errors import UsageError
from hwprof.remedies import catalogue


def test_all_of_them_but_a_number_of_threads_and_variants_to_compare_with() -> None:
    every = [name for name, one in catalogue.remedies().items() if name != catalogue.THREADS and not one.by_name]
    assert "bfloat16" in every and "torchscript" not in every
    assert _asked("all") == _asked(" ALL ,") == every
    assert _asked(None) == [] and _asked("compile, threads=4,") == ["compile", "threads=4"]


@pytest.mark.parametrize("text", ["all,foo", "compile,all"])
def test_all_stands_alone(text: str) -> None:
    with pytest.raises(UsageError, match="all stands alone"):
        _asked(text)
