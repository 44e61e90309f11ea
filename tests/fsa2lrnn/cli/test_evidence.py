"""What judges found, in words and as JSON."""

import math

from fsa2lrnn.cli import evidence
from fsa2lrnn.judge import Proved, Refuted, Undecided
from fsa2lrnn.judge.falsify import Falsified, Searched, Unfalsified

SEARCHED = Searched("exhaustive", "all words of 3 letters", 3, 8, 24, 0.1, None, False)


def failing(word, **changes):
    facts = {"margin": -0.5, "scans": ("sequential",), "found_by": "beam", "searches": (SEARCHED,), "exhaustive_to": 3}
    return Falsified(word, (0,) * len(word), (0,) * (len(word) - 1) + (1,), **{**facts, **changes})


def test_verdicts_in_words():
    assert "computed in bfloat16" in evidence.verdict_text(Proved(1, 2, 3, "bfloat16", ("sequential",)))
    text = evidence.verdict_text(Refuted(("a", "b"), (True, False), (True, True)))
    assert "differ on [bold]ab[/] (2 letters)" in text
    assert "model   accept reject" in text
    assert "the empty word" in evidence.verdict_text(Refuted((), (1,), (2,)))
    assert "every word of at most 7 letters" in evidence.verdict_text(Undecided(10, 7))
    assert "differ on [bold]a b[/]" in evidence.verdict_text(Refuted(("a", "b"), (1, 1), (1, 2)), ("a", "b", "up"))


def test_failing_words_have_the_json_of_refutations():
    found, refuted = failing((("a", 1), "b")), Refuted((("a", 1), "b"), (0, 0), (0, 1))
    facts, other = evidence.failure_json(found), evidence.verdict_json(refuted)
    assert facts["word"] == [{"tuple": ["a", 1]}, "b"]
    assert {name: facts[name] for name in ("word", "model_trace", "machine_trace")} == {
        name: other[name] for name in ("word", "model_trace", "machine_trace")
    }
    assert (facts["verdict"], other["verdict"]) == ("falsified", "refuted")
    assert facts["searched"] == [vars(SEARCHED)]
    assert math.isclose(facts["margin"], -0.5)


def test_failing_words_in_words():
    text = evidence.failure_text(failing("abab"), ("a", "b"))
    assert "wrong on [bold]abab[/] (4 letters, the shortest there is; beam search)" in text
    assert text.splitlines()[1:] == ["  model   0 0 0 0", "  machine 0 0 0 1"]
    text = evidence.failure_text(failing("ab" * 100), ("a", "b", "\x1b"))
    assert "ab" * 100 in text
    assert "(200 letters, none of at most 3 letters fails; beam search)" in text
    assert text.splitlines()[2] == "  machine … " + "0 " * 39 + "1"
    (row,) = evidence.failure_rows(failing("ab" * 100), ("a", "b"))
    assert row[1].startswith("200 letters: ababab")
    assert row[1].endswith("abab (beam)")
    assert len(row[1]) < 130


def test_what_was_searched_in_vain():
    text = evidence.failure_text(Unfalsified((SEARCHED,), 3), ("a", "b"))
    assert text.startswith("[yellow bold]not falsified[/]: no word of at most 3 letters fails, as far as single steps")
    assert text.endswith("  exhaustive  all words of 3 letters, cut short")
    assert "its states closed: no word of any length fails" in evidence.failure_text(Unfalsified((), None), "ab")
    assert evidence.failure_json(Unfalsified((SEARCHED,), 3))["verdict"] == "unfalsified"
    assert evidence.failure_rows(Unfalsified((SEARCHED,), 3)) == [
        ("failing word", "none found among all words of 3 letters")
    ]
