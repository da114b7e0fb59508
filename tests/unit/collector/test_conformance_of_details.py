"""What derives from a kind of detail is found by whoever asks for that kind."""

from __future__ import annotations

import pytest

from hwprof.collector.conformance import ConformanceError, _kind
from hwprof.run.details import Detail, EnergyDetail


class Own(EnergyDetail, kw_only=True, tag="own"):
    """Who asks for energy would not find it."""


class Further(EnergyDetail, kw_only=True, tag="energy"):
    """It has more to say."""


class Another(Detail, kw_only=True):
    """A kind of its own."""


def test_a_detail_has_the_tag_of_the_kind_that_it_derives_from() -> None:
    with pytest.raises(ConformanceError, match=r"Own derives from EnergyDetail: it needs its tag"):
        _kind(Own)
    _kind(Further)
    _kind(Another)
