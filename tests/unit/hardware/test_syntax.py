from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwprof.errors import UsageError
from hwprof.hardware.syntax import Request, parse, read


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("cycles", ["cycles"]),
        (" cycles , instructions,", ["cycles", "instructions"]),
        ("cpu/event=0xc7,umask=0x20/u,flops", ["cpu/event=0xc7,umask=0x20/u", "flops"]),
        ("r20c7:u,cpu/mem-loads/,msr/tsc/", ["r20c7:u", "cpu/mem-loads/", "msr/tsc/"]),
        ("cpu/event=1", ["cpu/event=1"]),  # refused when it is read
    ],
)
def test_lists_are_split_at_commas_outside_of_slashes(text: str, items: list[str]) -> None:
    assert parse(text) == items


@pytest.mark.parametrize("text", ["", " , ,"])
def test_an_empty_list_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="empty"):
        parse(text)


NAMES = st.from_regex(r"[a-z][a-z0-9_.-]{0,8}", fullmatch=True)
TERMS = st.lists(NAMES, min_size=1, max_size=3).map(",".join)
ITEMS = st.one_of(
    NAMES, st.tuples(NAMES, TERMS, st.sampled_from(["", "u", "k"])).map(lambda t: f"{t[0]}/{t[1]}/{t[2]}")
)


@given(st.lists(ITEMS, min_size=1, max_size=6))
def test_whatever_is_joined_is_parsed_back(items: list[str]) -> None:
    assert parse(",".join(items)) == items


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ("cycles", Request("cycles", name="cycles")),
        ("cycles:u", Request("cycles:u", name="cycles", exclude_kernel=True)),
        ("cycles:k", Request("cycles:k", name="cycles", exclude_user=True)),
        ("cycles:uk", Request("cycles:uk", name="cycles")),
        ("r20C7", Request("r20C7", config=0x20C7)),
        ("ref-cycles", Request("ref-cycles", name="ref-cycles")),  # no raw code, though it begins with an r
        (
            "cpu/event=0xc7,umask=0x20,name=fp256/u",
            Request(
                "cpu/event=0xc7,umask=0x20,name=fp256/u",
                pmu="cpu",
                terms="event=0xc7,umask=0x20",
                label="fp256",
                exclude_kernel=True,
            ),
        ),
    ],
)
def test_items_are_understood(item: str, expected: Request) -> None:
    assert read(item) == expected


@pytest.mark.parametrize(
    ("item", "says"),
    [
        ("cycles:p", "modifier"),
        ("cycles:", "modifier"),
        ("cpu/event=1", "write it like perf does"),
        ("/event=1/", "write it like perf does"),
        ("cpu//", "names no event"),
        ("cpu/name=x/", "names no event"),
        ('cpu/event=1,name=a"b/', "other characters"),
        ("r" + "f" * 17, "64 bits"),
        ("{cycles", "without braces"),
        ("cpu/event=0xzz/", "'event=0xzz' in .* has no number"),
        ("sched:sched_switch", "tracepoints"),
        ("mem:0x1234", "breakpoints"),
    ],
)
def test_what_is_no_event_is_refused_in_one_line(item: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        read(item)
