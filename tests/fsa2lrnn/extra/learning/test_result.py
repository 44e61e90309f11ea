import pytest

from fsa2lrnn import compile_machine, zoo
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.extra.learning.result import Agreement, Learned
from fsa2lrnn.verdicts import Scope, Undecided


def learned(verdict):
    return Learned(None, zoo.parity(), verdict, "every word", (0,), None, (), 1, 1, 0.0, 0, 1)


def test_agreement_never_says_proved():
    said = learned(Agreement(40, 39, 100, 99)).explain()
    assert "right on 39 of 40 held-out words" in said
    assert "says nothing" in said
    assert "prove" not in said
    assert not learned(Agreement(40, 40, 100, 100)).is_proved


def test_where_outputs_are_wrong_their_share_stands_beside_what_is_expected():
    """An exact machine was reported right on 16 of 50 words."""
    exact = Agreement(50, 16, 500, 450, noise=0.1)
    assert exact.expected == 0.9
    low, high = exact.interval
    assert low < exact.expected < high < 0.95
    said = learned(exact).explain()
    assert "equal to 450 of 500 held-out outputs" in said
    assert "the right machine is expected to reach 0.9000, since a share of 0.1 of the outputs is wrong" in said
    assert "16" not in said
    assert exact.to_json()["expected"] == 0.9
    unknown = Agreement(50, 16, 500, 450, noise=None)
    assert unknown.expected is None
    assert "no share can be expected" in learned(unknown).explain()
    with pytest.raises(UnsupportedFormat, match=r"noise = 1\.0 of an agreement"):
        Agreement(50, 16, 500, 450, noise=1.0)


def test_what_is_not_known_is_said():
    assert "no words were held out" in learned(None).explain()
    assert "words of up to 7 letters; the budget ended there" in learned(Undecided(7, Scope(2), 10)).explain()
    steps = learned(Undecided(None, Scope(2), 10)).explain()
    assert steps.endswith(
        "on which no word fails by single steps, in an arithmetic that is not the scans' own: no proof"
    )


def test_a_result_is_short_and_on_one_line():
    machine = zoo.group("S3")
    model = compile_machine(machine)
    learned = Learned(
        model, machine, Agreement(9, 9, 90, 90), "every word", (0,), model, ({"step": 1},) * 999, 1, 1, 1.0, 0, 90
    )
    assert len(repr(learned)) <= 200
    assert repr(learned).startswith("Learned(")
    assert str(learned).startswith("a machine of 6 states, right on 9 of 9 held-out words")
    assert learned._repr_html_().startswith("<div style=")
    assert "\n" not in repr(learned) + str(learned)
