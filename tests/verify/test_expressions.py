"""Random regular expressions compared with Python's `re`: none is read as another language."""

from verify.expressions import compare


def test_no_pattern_is_read_differently_and_most_are_read():
    counts, refusals, different = compare(500, seed=1)
    assert different == []
    assert counts["plain: read"] > 4 * counts["plain: refused"]
    assert {"is possessive", "is a back-reference", "is not a class", "is not an escape"} <= set(refusals)
