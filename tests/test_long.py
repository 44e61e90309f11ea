"""The list of long tests: its names are those of tests, and a report adds the right ones."""

import re
from pathlib import Path

from tests import long

ROOT = Path(__file__).parent.parent


def test_every_name_is_that_of_a_test():
    for name in long.names():
        file, _, function = name.split("[")[0].partition("::")
        text = (ROOT / file).read_text("utf-8")
        is_doctest = not file.startswith("tests/")
        assert is_doctest or re.search(rf"^def {function}\(", text, re.MULTILINE), f"{name}: take it off tests/long.txt"


def test_long_tests_of_a_report():
    report = """
    1.50s call     tests/test_a.py::test_one
    0.60s setup    tests/test_a.py::test_two
    0.60s call     tests/test_a.py::test_two
    0.90s call     tests/test_a.py::test_short
    9.00s call     tests/test_a.py::test_case[2 and more]
    7.00s call     tests/test_layering.py::test_rules
    """
    expected = {f"tests/test_a.py::test_{name}" for name in ("one", "two", "case[2 and more]")}
    assert long.long_tests(report) == expected
