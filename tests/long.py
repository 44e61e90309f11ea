"""Tests of more than a second, which `make test` leaves to `make test-full`: `long.txt` has their names.

    pytest -q -n auto -m "not slow" --durations=0 --durations-min=0.2 > REPORT
    python -m tests.long REPORT

A report adds names. A fixture that several tests share counts for the first of them, so a second report, of
`-m "not slow and not long"`, adds the others. Of a function all of whose cases are long the shortest case stays.
"""

import re
import sys
from collections import defaultdict
from pathlib import Path

FILE = Path(__file__).parent / "long.txt"
SECONDS, MOST = 1.0, 2.0  # of a long test, and of a case that stays
STAY = ("tests/test_layering.py", "tests/test_reference.py", "tests/test_vocabulary.py")
LINE = re.compile(r"\s*([\d.]+)s (?:call|setup|teardown)\s+(\S.*?)\s*")


def names():
    return FILE.read_text("utf-8").splitlines()


def long_tests(report):
    """The names of the long tests of a report."""
    functions = defaultdict(lambda: defaultdict(float))
    for match in filter(None, map(LINE.fullmatch, report.splitlines())):
        name = match[2]
        functions[name.split("[")[0]][name] += float(match[1])
    found = set()
    for function, cases in functions.items():
        long = {name for name, seconds in cases.items() if seconds >= SECONDS}
        shortest = min(cases, key=cases.__getitem__)
        if len(long) == len(cases) > 1 and cases[shortest] <= MOST:
            long.remove(shortest)
        if not function.startswith(STAY):
            found |= long
    return found


if __name__ == "__main__":
    known = set(names()) if FILE.exists() else set()
    FILE.write_text("".join(f"{name}\n" for name in sorted(known | long_tests(Path(sys.argv[1]).read_text("utf-8")))))
