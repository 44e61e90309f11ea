from fsa2lrnn.training.learning.result import Agreement, Learned
from fsa2lrnn.verdicts import Scope, Undecided


def learned(verdict):
    from fsa2lrnn import zoo

    return Learned(None, zoo.parity(), verdict, "every word", (0,), None, (), 1, 1, 0.0, 0, 1)


def test_agreement_never_says_proved():
    said = learned(Agreement(40, 39, 100, 99)).explain()
    assert "right on 39 of 40 held-out words" in said
    assert "says nothing" in said
    assert "prove" not in said
    assert not learned(Agreement(40, 40, 100, 100)).is_proved


def test_what_is_not_known_is_said():
    assert "no words were held out" in learned(None).explain()
    assert "words of up to 7 letters; the budget ended there" in learned(Undecided(7, Scope(2), 10)).explain()
    steps = learned(Undecided(None, Scope(2), 10)).explain()
    assert steps.endswith(
        "on which no word fails by single steps, in an arithmetic that is not the scans' own: no proof"
    )
