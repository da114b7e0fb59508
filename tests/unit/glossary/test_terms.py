"""The glossary's data: complete, without riddles, and found however a word is spelt."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from hwprof.analysis import roofline, states
from hwprof.analysis.findings import rules
from hwprof.glossary.explain import MOST_WORDS, is_known
from hwprof.glossary.terms import by_name, find, nearest, normal, terms
from hwprof.hardware.metrics import facts
from hwprof.remedies import catalogue

OFF_CPU = Path(__file__).parents[3] / "collectors" / "sampler" / "off_cpu_reasons.toml"
LINE = 120
"""Characters of a meaning: one line."""


def test_every_entry_is_one_line_and_leads_to_others() -> None:
    assert len({term.term for term in terms()}) == len(terms())
    for term in terms():
        assert 0 < len(term.meaning) <= LINE and "\n" not in term.meaning, term.term
        assert not term.meaning.endswith("."), term.term
        assert term.metric is None or term.metric in facts(), term.term
        for other in term.see:
            assert find(other) not in (None, term), (term.term, other)


def test_topics_stand_together() -> None:
    topics = [term.topic for term in terms()]
    changes = [topic for topic, before in zip(topics, [None, *topics], strict=False) if topic != before]
    assert len(changes) == len(set(topics))


def test_provenances_are_the_known_ones() -> None:
    known = {"measured", "instrumented", "simulated", "modelled", "derived"}
    assert {term.provenance for term in terms()} <= known | {None}
    assert all(find(name) is not None for name in known)


@pytest.mark.parametrize(
    ("word", "term"),
    [
        ("cpi", "CPI"),
        ("CPI~", "CPI~"),
        ("ipc~", "IPC"),
        ("~", "instrumented"),
        ("°", "modelled"),
        ("off cpu", "off-CPU"),
        ("OFF_CPU", "off-CPU"),
        ("Critical-Path", "critical path"),
        ("primitives", "primitive"),
        ("loses most to", "largest loss"),
        ("multiplexed†", "multiplexed"),
        ("of layer", "share"),
        ("ins/ns~", "instrumented"),
        ("other thread", "other thread"),
        ("Winograd", "FLOP check"),
        ("accounted for", "CPU time accounted for"),
        ("mainly in", "kernel"),
        ("rest of inference", "unattributed"),
        ("rest of iteration", "outside inference"),
        ("mean ms", "std"),
        ("padding", "FLOP check"),
        ("condition", "off-CPU reason"),
        ("GFLOP/s (counted)~", "GFLOP/s"),
        ("candidates", "candidates"),
        ("–", "not available"),
    ],
)
def test_a_word_is_found_however_it_is_spelt(word: str, term: str) -> None:
    found = find(word)
    assert found is not None and found.term == term


@pytest.mark.parametrize("series", ["memory/pss", "memory/rss", "memory/page-faults", "core-clock", "energy/package"])
def test_series_are_found_as_they_are_printed(series: str) -> None:
    assert find(series) is not None


def test_an_unknown_word_has_neighbours() -> None:
    assert find("imbalanse") is None
    assert nearest("imbalanse")[0] == "imbalance"
    assert "llc_mpki" in nearest("llc_mpky", facts())
    assert nearest("qqqqqqqq") == []


def test_of_a_short_word_one_letter_makes_no_other_one() -> None:
    for word in ("cpy", "cip", "zpi"):
        assert "cpi" in nearest(word, facts())
    assert nearest("qqq", facts()) == [] and nearest("zpy", facts()) == []


def test_what_threads_do_is_explained() -> None:
    """The states that tables and traces name."""
    for state in (states.BUSY, states.WAITING, states.PREEMPTED, states.BARRIER, states.BLOCKED):
        assert find(state) is not None, state


def test_every_reason_to_be_off_cpu_is_explained() -> None:
    data = tomllib.loads(OFF_CPU.read_text(encoding="utf-8"))
    reasons = {*data["domains"].values(), *data["calls"], *data["kernel"]}
    reasons |= {caller["reason"] for mutual in data["mutual"] for caller in mutual["callers"]}
    assert "condition" in reasons
    assert [reason for reason in sorted(reasons) if find(reason) is None] == []


def test_no_name_has_more_words_than_are_joined() -> None:
    names = [name for term in terms() for name in (term.term, *term.names)]
    names += [metric.title for metric in facts().values()]
    assert max(len(name.split()) for name in names) <= MOST_WORDS


def test_names_have_one_meaning() -> None:
    assert len(by_name()) == len({normal(name) for name in by_name()})


def test_every_remedy_and_what_the_first_screen_says_is_explained() -> None:
    first = ["images/s", "GEMM peak", "WHERE", "DO", "LOST", "quiet", "efficiency", "random weights", "budget", "bound"]
    for word in [*catalogue.names(), *first]:
        assert find(word) is not None, word


@pytest.mark.parametrize("name", rules.names())
def test_every_rule_is_explained_as_it_is_printed(name: str) -> None:
    for word in (name, name.replace("_", " ")):
        assert find(word) is not None, word
    term = find(name)
    assert term is not None and (term.term == "findings" or any("finding" in line for line in term.more))


@pytest.mark.parametrize(
    ("word", "term", "says"),
    [
        ("NOISY", "disturbed iteration", ""),
        ("not known", "not available", ""),
        ("latency", "roofline", "latency"),
        ("overhead", "overhead", "bounds a layer"),
        ("waiting", "waiting", "time budget"),
        ("up to", "findings", "up to"),
        ("page faults", "time budget", "page faults"),
        ("blocked", "off-CPU", "time budget"),
        ("emulated numbers", "findings", "emulated numbers"),
    ],
)
def test_a_word_of_the_report_is_explained_in_each_of_its_senses(word: str, term: str, says: str) -> None:
    found = find(word)
    assert found is not None and found.term == term
    assert says in " ".join(found.more)


def test_every_bound_is_explained() -> None:
    names = ("COMPUTE", "LATENCY", "WAITING", "OVERHEAD", "FRONT_END", "BAD_SPECULATION", "NOT_KNOWN")
    for bound in (getattr(roofline, name) for name in names):
        assert is_known(bound), bound
