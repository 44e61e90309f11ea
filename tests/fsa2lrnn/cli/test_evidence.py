"""What judges found, in words."""

from fsa2lrnn.cli import evidence
from fsa2lrnn.verdicts import Counterexample, Coverage, Proved, Refuted, Scope, SearchRecord, Undecided

SEARCHED = SearchRecord("exhaustive", "all words of 3 letters", 3, 8, 24, 0.1, None, False)
EVERYWHERE = Scope(3)


def failing(word, checked=3, scope=EVERYWHERE):
    failure = Counterexample(word, (0,) * (len(word) - 1) + (1,), (0,) * len(word), None, -0.5, ("sequential",))
    return Refuted(failure, checked, scope, "beam", (SEARCHED,))


def test_verdicts_in_words():
    text = evidence.verdict_text(
        Proved(1, 2, Coverage("bfloat16", ("sequential",), "every", None), Scope(3, 1, ("?",)), "0f")
    )
    assert "covered: in bfloat16" in text
    assert text.endswith("outputs of 1 of 3 states do not count: ?; nor does that of the empty word")
    text = evidence.verdict_text(Refuted(Counterexample(("a", "b"), (True, True), (True, False)), 1, Scope(3)))
    assert text.endswith("every output counts but that of the empty word")
    assert "differ on [bold]ab[/] (2 letters), and on no shorter word\n" in text
    assert "model   accept reject" in text
    assert "the empty word" in evidence.verdict_text(
        Refuted(Counterexample((), (2,), (1,)), -1, Scope(3, empty_word=True))
    )
    assert "every word of at most 7 letters. Raise --max-states" in evidence.verdict_text(Undecided(7, Scope(3), 10))
    refuted = Refuted(Counterexample(("a", "b"), (1, 1), (1, 2)), 1, Scope(3))
    assert "differ on [bold]a b[/]" in evidence.verdict_text(refuted, ("a", "b", "up"))


def test_failing_words_that_were_searched_for():
    text = evidence.verdict_text(failing("abab"), ("a", "b"))
    assert "differ on [bold]abab[/] (4 letters), and on no shorter word (beam)\n" in text
    assert text.splitlines()[1:3] == ["  model   0 0 0 0", "  machine 0 0 0 1"]
    text = evidence.verdict_text(failing("ab" * 100), ("a", "b", "\x1b"))
    assert "ab" * 100 in text
    assert "(200 letters), and on none of at most 3 letters (beam)" in text
    assert text.splitlines()[2] == "  machine … " + "0 " * 39 + "1"
    (row,) = evidence.failure_rows(failing("ab" * 100), ("a", "b"))
    assert row[1].startswith("200 letters: ababab")
    assert row[1].endswith("abab (beam)")
    assert len(row[1]) < 130


def test_what_was_searched_in_vain():
    text = evidence.verdict_text(Undecided(3, Scope(2), None, (SEARCHED,)))
    assert "no counterexample was found; equal on every word of at most 3 letters, by single steps\n" in text
    assert text.splitlines()[1:] == [
        "  exhaustive  all words of 3 letters, cut short",
        "  every output counts but that of the empty word",
    ]
    assert "equal on every word of every length, by" in evidence.verdict_text(Undecided(None, Scope(2), None, ()))
    assert evidence.failure_rows(Undecided(3, Scope(2), None, (SEARCHED,))) == [
        ("counterexample", "none found among all words of 3 letters")
    ]


def test_nothing_that_a_terminal_obeys():
    text = evidence.verdict_text(failing(("\x1b[2J",), scope=Scope(3, 1, ("\u202e",))), ("\x1b[2J", "b"))
    assert all(c.isprintable() or c == "\n" for c in text)
