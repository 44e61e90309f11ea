"""The README's numbers are those of the results."""

from experiments import readme


def test_the_measurements_in_the_readme_are_regenerated_as_they_stand():
    text = readme.README.read_text(encoding="utf-8")
    assert readme.regenerated(text) == text
