"""Hostile and broken input, faults and limits, in great numbers.

    python -m scripts.faults [--seconds 60] [--seed 0] [--only KIND ...] [--case KIND:NUMBER]

Every case is made of its kind, the seed and its number, and done by a copy of a process that has imported what it
needs. What must hold in each: it ends in time (without what it waited for a processor that others had), with an exit
code of the documented ones; a failure is one line on standard error, without a traceback and without a word of a
defect; nothing obeyed by a terminal is printed; no process is left after 3 s; nothing is written outside of the output
folder and the cache; memory stays below a bound; what was there is unchanged; and where a stranger's file is read,
nothing is started, sent or removed.

``--case`` does one again, keeps its folder, and prints what came of it.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any, Final

from scripts.benchmarks.tables import Part, Table, write
from scripts.faults.case import Case, Outcome
from scripts.faults.disks import RESULTS, small_disk
from scripts.faults.fresh import Fresh
from scripts.faults.rules import broken, contents, never_ended, runs_missing
from scripts.faults.warm import Warm

KINDS: Final = ("mutated_runs", "checkpoints", "sources", "videos", "surroundings", "collects", "starts")
SHOWN: Final = 200
"""Characters of what was done."""

OWN: Final = (".out", ".err", ".events")
ALLOWED: Final = (RESULTS, ".cache", "__pycache__")


@dataclass
class Found:
    """What a campaign has found so far."""

    cases: Counter[str] = field(default_factory=Counter)
    codes: Counter[tuple[str, int]] = field(default_factory=Counter)
    slowest_s: dict[str, float] = field(default_factory=dict)
    violations: list[tuple[str, int, str, str, str]] = field(default_factory=list)  # kind, number, rule, what, err


def main() -> int:
    """The exit code: 1 where something did not hold."""
    options = _options()
    if options.case:
        name, _, number = options.case.partition(":")
        return _again(name, number, options.seed)
    found = Found()
    deadline = time.monotonic() + options.seconds
    with tempfile.TemporaryDirectory(prefix="hwprof-faults-") as place:
        kinds = options.only or KINDS
        with ThreadPoolExecutor(len(kinds)) as threads:
            done = [
                threads.submit(_campaign, kind, options.seed, deadline, Path(place) / kind, found) for kind in kinds
            ]
        for one in done:
            one.result()  # raises what the campaign itself did wrong
    for kind, number, rule, what, err in found.violations[:100]:
        print(f"{kind}:{number}: {rule}: {what}\n    {err}", file=sys.stderr)
    if options.output is not None:
        write(_table(found), options.output)
    print(f"{found.cases.total()} cases, {len(found.violations)} violations", file=sys.stderr)
    return 1 if found.violations else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", choices=KINDS)
    parser.add_argument("--case", metavar="KIND:NUMBER")
    parser.add_argument("--output", type=Path, help="the table: results/faults.md")
    return parser.parse_args()


def kind_of(name: str) -> ModuleType:
    """The module that makes its cases."""
    return import_module(f"scripts.faults.kinds.{name}")


def ready_for(kind: ModuleType) -> Warm | Fresh:
    """What carries its cases out."""
    return Warm(kind.IMPORTS) if kind.IMPORTS else Fresh()


def _campaign(name: str, seed: int, deadline: float, place: Path, found: Found) -> None:
    kind = kind_of(name)
    place.mkdir()
    shared = kind.shared(place / "shared")
    with ready_for(kind) as ready:
        number = 0
        while time.monotonic() < deadline:
            with tempfile.TemporaryDirectory(dir=place, prefix=f"{number}-") as folder:
                case, outcomes, rules = carried_out(kind, f"{seed}:{number}", Path(folder), shared, ready)
            found.cases[name] += 1
            found.codes.update((name, one.code) for one in outcomes)
            found.slowest_s[name] = max(found.slowest_s.get(name, 0.0), *(one.seconds for one in outcomes))
            err = ascii("".join(one.err for one in outcomes).strip())[:SHOWN]
            found.violations += [(name, number, rule, ascii(case.what)[:SHOWN], err) for rule in rules]
            number += 1


def carried_out(
    kind: ModuleType, seed: str, folder: Path, shared: Any, ready: Warm | Fresh
) -> tuple[Case, list[Outcome], list[str]]:
    """One case: what it was, what came of it, and which rules it broke."""
    case = kind.case(Random(seed), folder, shared)
    with small_disk(case, folder):
        before, there = contents(case.unchanged), set(_files(folder))
        outcomes = ready.carry_out(case, folder)
        new = [str(path.relative_to(folder)) for path in _files(folder) if path not in there]
        outside = [name for name in new if not name.startswith((*OWN, *ALLOWED))]
        rules = [rule for one in outcomes for rule in broken(case, one, before, outside)]
        if case.beside and (rule := runs_missing(folder / RESULTS, outcomes)):
            rules.append(rule)
        if case.arguments[:1] == ("collect",):
            rules += never_ended(folder / RESULTS, case, outcomes)
        if case.then:
            after = Case(f"then {' '.join(case.then)}", case.then, limit_s=case.limit_s, limit_bytes=case.limit_bytes)
            (outcome,) = ready.carry_out(after, folder)
            rules += [f"then: {rule}" for rule in broken(after, outcome, {}, ())]
    return case, outcomes, rules


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir())


def _again(name: str, number: str, seed: int) -> int:
    place = Path(tempfile.mkdtemp(prefix="hwprof-fault-"))
    kind = kind_of(name)
    folder = place / "case"
    folder.mkdir()
    with ready_for(kind) as ready:
        case, outcomes, rules = carried_out(kind, f"{seed}:{number}", folder, kind.shared(place / "shared"), ready)
    for told in (f"in {folder}: {case.what}", case.arguments, *outcomes, *rules):
        print(ascii(told))
    return 1 if rules else 0


def _table(found: Found) -> Table:
    rows = []
    for kind in sorted(found.cases):
        codes = ", ".join(f"{code}: {n}" for (one, code), n in sorted(found.codes.items()) if one == kind)
        broken_ones = sum(one[0] == kind for one in found.violations)
        rows.append([kind, str(found.cases[kind]), str(broken_ones), codes, f"{found.slowest_s[kind]:.1f}"])
    rules = Counter((kind, rule) for kind, _, rule, _, _ in found.violations)
    return Table(
        title="Faults",
        columns=["kind", "cases", "violations", "exit codes: cases", "slowest, s"],
        rows=rows,
        note=__doc__ or "",
        further=(Part("Violations", ["kind", "rule", "cases"], [[*key, str(n)] for key, n in rules.most_common()]),)
        if rules
        else (),
    )


if __name__ == "__main__":
    sys.exit(main())
