"""What judges found, in words and as JSON."""

from fsa2lrnn.cli import evidence
from fsa2lrnn.verdicts import FailingWord, Proved, Refuted, Scope, Searched, Undecided

SEARCHED = Searched("exhaustive", "all words of 3 letters", 3, 8, 24, 0.1, None, False)


def failing(word):
    failure = FailingWord(tuple(word), (0,) * (len(word) - 1) + (1,), (0,) * len(word), None, -0.5, ("sequential",))
    return Refuted(failure, 3, Scope(3), "beam", (SEARCHED,))


def test_verdicts_in_words():
    text = evidence.verdict_text(Proved(1, 2, "bfloat16", ("sequential",), Scope(3, 1, ("?",))))
    assert "computed in bfloat16" in text
    assert text.endswith("outputs of 1 of 3 states do not count: ?; nor does that of the empty word")
    text = evidence.verdict_text(Refuted(FailingWord(("a", "b"), (True, True), (True, False)), 1, Scope(3)))
    assert text.endswith("every output counts but that of the empty word")
    assert "differ on [bold]ab[/] (2 letters)" in text
    assert "model   accept reject" in text
    empty = Refuted(FailingWord((), (2,), (1,)), -1, Scope(3, empty_word=True))
    assert "the empty word" in evidence.verdict_text(empty)
    assert "every word of at most 7 letters" in evidence.verdict_text(Undecided(7, Scope(3), 10))
    spaced = Refuted(FailingWord(("a", "b"), (1, 2), (1, 1)), 1, Scope(3))
    assert "differ on [bold]a b[/]" in evidence.verdict_text(spaced, ("a", "b", "up"))


def test_failing_words_in_words():
    text = evidence.failure_text(failing("abab"), ("a", "b"))
    assert "wrong on [bold]abab[/] (4 letters, the shortest there is; beam search)" in text
    assert text.splitlines()[1:3] == ["  model   0 0 0 0", "  machine 0 0 0 1"]
    text = evidence.failure_text(failing("ab" * 100), ("a", "b", "\x1b"))
    assert "ab" * 100 in text
    assert "(200 letters, none of at most 3 letters fails; beam search)" in text
    assert text.splitlines()[2] == "  machine … " + "0 " * 39 + "1"
    (row,) = evidence.failure_rows(failing("ab" * 100), ("a", "b"))
    assert row[1].startswith("200 letters: ababab")
    assert row[1].endswith("abab (beam)")
    assert len(row[1]) < 130


def test_what_was_searched_in_vain():
    found = Undecided(3, Scope(3), None, (SEARCHED,))
    text = evidence.failure_text(found, ("a", "b"))
    assert text.startswith("[yellow bold]undecided[/]: no word of at most 3 letters fails, as far as single steps")
    assert "\n  exhaustive  all words of 3 letters, cut short\n" in text
    assert "its states closed: no word of any length fails" in evidence.failure_text(Undecided(None, Scope(3)), "ab")
    assert evidence.failure_rows(found) == [("failing word", "none found among all words of 3 letters")]
