"""Runs tests several times beside busy processes, and lists what failed and how often.

    python -m scripts.tests_under_load --times 10 --busy 2 tests/integration tests/pmu

The busy processes are plain loops at nice 0: with as many of them as there are processors, a test's threads get half of
the machine. Arguments that are not this command's own go to pytest. Exit status 1 if any test failed in any run.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import monotonic
from xml.etree import ElementTree

from scripts.neighbours import loops


def failed(junit: Path) -> Iterator[tuple[str, str]]:
    """Name and first line of each failure in a report of pytest's."""
    for case in ElementTree.parse(junit).iter("testcase"):
        for child in case:
            if child.tag in ("failure", "error"):
                yield f"{case.get('classname')}::{case.get('name')}", (child.get("message") or "").splitlines()[0][:200]


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=10, help="how often the tests run (10)")
    parser.add_argument("--busy", type=int, default=2, help="how many busy processes run beside them (2)")
    parser.add_argument("--log", type=Path, help="where pytest's own output is appended")
    options, rest = parser.parse_known_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the busy processes end
    counts: Counter[str] = Counter()
    reasons: dict[str, str] = {}
    broken = 0
    with tempfile.TemporaryDirectory() as place, loops(options.busy):
        for number in range(1, options.times + 1):
            junit = Path(place) / "junit.xml"
            junit.unlink(missing_ok=True)
            begin = monotonic()
            command = [sys.executable, "-m", "pytest", "-q", "--tb=short", f"--junit-xml={junit}", *rest]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if options.log:
                with options.log.open("a") as log:
                    log.write(done.stdout + done.stderr)
            found = dict(failed(junit)) if junit.exists() else {}
            broken += done.returncode != 0
            counts.update(found.keys())
            reasons |= found
            last = (done.stdout.strip().splitlines() or [done.stderr.strip()])[-1]
            print(f"{number}/{options.times}: {last} [{monotonic() - begin:.0f} s]", *found, sep="\n    ", flush=True)
    for name, times in counts.most_common():
        print(f"{times}/{options.times} {name}: {reasons[name]}")
    print(f"{options.times - broken} of {options.times} runs passed beside {options.busy} busy processes")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
