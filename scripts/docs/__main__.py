"""Makes the generated parts of docs/ anew.

python -m scripts.docs            writes what changed, and names it
python -m scripts.docs --check    only names it; exit code 1 if there is something
"""

from __future__ import annotations

import argparse
import sys

from scripts.docs import pages


def main() -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(prog="python -m scripts.docs", description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing")
    check: bool = parser.parse_args().check
    stale = pages.stale()
    for path, text in stale.items():
        print(path)
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
