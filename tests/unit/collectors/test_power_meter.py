"""What a power meter's lines say, and what they come to."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.power_meter.collector import PowerMeterCollector
from collectors.power_meter.energy import joules
from collectors.power_meter.lines import parse, read
from hwprof.errors import UsageError

AT = 1_790_000_000


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("36.5", (None, 36.5)),
        ("36.5 W", (None, 36.5)),
        ("36.5W", (None, 36.5)),
        (f"{AT}.25 36.5", (AT * 10**9 + 250_000_000, 36.5)),
        (f"{AT},36.5,221.3,0.2", None),  # which of them?
        (f"{AT} 36500 mW", (AT * 10**9, 36.5)),
        (f"{AT};0.0365;kW", (AT * 10**9, 36.5)),
        (f"{AT} 230 V", None),
        ("36500mW", (None, 36.5)),
        (f"{AT} 40 7", None),  # 40, or 7, and never 407
        ("40 7", None),
        (f"{AT},40,7", None),
        ("36,5", None),  # two columns, or a decimal comma
        (f"{AT},36,5", None),
        (f"{AT};36,5", (AT * 10**9, 36.5)),
        (f"{AT};36,5W", (AT * 10**9, 36.5)),
        (f"{AT},25;36,5", (AT * 10**9 + 250_000_000, 36.5)),
        ("36,5;W", (None, 36.5)),
        (f"{AT} 36.5 W 230V", None),
        ("36.5W W", None),
        ("36.5 ", (None, 36.5)),
        ("2026-09-21T14:13:20Z;36.5", (AT * 10**9, 36.5)),
        ("2026-09-21 14:13:20.5+00:00 36.5 W", (AT * 10**9 + 500_000_000, 36.5)),
        ("12.5 36.5", None),  # no time, and no watts alone
        ("time,watts", None),
        ("-3", None),
        ("nan", None),
        ("inf", None),
        (f"{AT} nan", None),
        ("1e9", None),
        ("", None),
        ("9" * 400, None),
        ("2026-99-99T00:00:00 5", None),
    ],
)
def test_a_line_is_watts_or_a_time_and_watts(line: str, expected: tuple[int | None, float] | None) -> None:
    assert parse(line) == expected


@given(st.text())
def test_any_text_is_a_reading_or_none(line: str) -> None:
    found = parse(line)
    assert found is None or 0 <= found[1] <= 1e6


def test_headers_and_comments_are_nothing_and_what_comes_between_readings_is_counted() -> None:
    found = read(["# meter 7", "time;watts", f"{AT};30", "", "lost", f"{AT + 1};31", "# end"])
    assert found.readings == [(AT * 10**9, 30.0), ((AT + 1) * 10**9, 31.0)]
    assert found.refused == 1


@pytest.mark.parametrize(
    ("header", "line", "watts"),
    [
        ("time;volts;watts", f"{AT};230.1;36.5", 36.5),
        ("date time power_W amps", "2026-09-21 14:13:20+00:00 36.5 0.2", 36.5),
        ("time,W,V", f"{AT},36.5,230.1", 36.5),
        ("time,watts_in,watts_out", f"{AT},36.5,30.1", None),
        ("time,volts,amps", f"{AT},230.1,0.2", None),
    ],
)
def test_a_header_says_which_column_is_the_power(header: str, line: str, watts: float | None) -> None:
    assert [found for _, found in read([header, line]).readings] == ([] if watts is None else [watts])


def test_watts_become_joules_and_time_never_goes_back() -> None:
    second = 10**9
    found = joules([(0, 10.0), (second, 20.0), (second // 2, 5.0), (second, 7.0), (3 * second, 20.0)])
    assert found.times_ns == [0, second, 3 * second]
    assert found.joules == [0.0, 15.0, 55.0]
    assert (found.backwards, found.at_once) == (1, 1)
    assert joules([(0, 10.0), (0, 20.0), (second, 20.0)])[2:] == (0, 1)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"power_command": "true", "power_file": "/dev/null"},
        {"power_command": ""},
        {"power_command": "'"},
        {"power_command": "no-such-program-here 1"},
        {"power_file": "/no/such/file"},
        {"power_file": "/"},
    ],
)
def test_options_that_name_no_meter_are_refused(options: dict[str, str]) -> None:
    with pytest.raises(UsageError):
        PowerMeterCollector().check_options(options)
