"""docs/coverage.md is what the judges name, and verdicts do name it."""

from experiments import coverage


def test_the_page_is_up_to_date():
    assert coverage.FILE.read_text(encoding="utf-8") == coverage.page()
