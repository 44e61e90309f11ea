"""Tests of more than a second, which `make test` leaves to `make test-full`: `long.txt` has their names.

    pytest -q -n auto -m "not slow" --durations=0 --durations-min=0.2 > REPORT
    python -m tests.long REPORT

A report adds names. A fixture that several tests share counts for the first of them, so a second report, of
`-m "not slow and not long"`, adds the others.
"""

import re
import sys
from collections import Counter
from pathlib import Path

FILE = Path(__file__).parent / "long.txt"
SECONDS = 1.0
STAY = ("tests/test_layering.py", "tests/test_reference.py")
LINE = re.compile(r"\s*([\d.]+)s (?:call|setup|teardown)\s+(\S.*?)\s*")


def names():
    return FILE.read_text("utf-8").splitlines()


def long_tests(report):
    """The names of the long tests of a report."""
    seconds = Counter()
    for match in filter(None, map(LINE.fullmatch, report.splitlines())):
        seconds[match[2]] += float(match[1])
    return {name for name, spent in seconds.items() if spent >= SECONDS and not name.startswith(STAY)}


if __name__ == "__main__":
    known = set(names()) if FILE.exists() else set()
    FILE.write_text("".join(f"{name}\n" for name in sorted(known | long_tests(Path(sys.argv[1]).read_text("utf-8")))))
