"""Facts, witnesses, and words in sentences."""

import pytest

from fsa2lrnn.automata import MooreMachine, zoo
from fsa2lrnn.automata.monoid import Action, Fact, FactWitness


def test_a_fact_is_no_truth_value():
    with pytest.raises(TypeError, match="a Fact is no truth value, since it may be undecided"):
        bool(Fact(True, "by hand"))


@pytest.mark.parametrize(
    ("value", "answer"), [(True, "yes"), (False, "no"), (None, "undecided"), (0, "0"), (1, "1"), (12_345, "12,345")]
)
def test_answers(value, answer):
    assert Fact(value, "by hand").answer == answer
    assert Fact(value, "by hand").explain() == f"{answer} (by hand)"


def test_a_fact_with_a_witness():
    fact = Fact(False, "by hand", FactWitness("'ab' does it", (("a", "b"),), (0, 2)))
    assert fact.explain(", so") == "no, so: 'ab' does it (by hand)"
    assert fact.to_json() == {
        "value": False,
        "method": "by hand",
        "witness": {"says": "'ab' does it", "words": [["a", "b"]], "states": [0, 2]},
    }
    assert Fact(True, "by hand").to_json()["witness"] is None


def action_over(*alphabet):
    return Action.of(MooreMachine([[i, 1 - i] for i in range(2)][: len(alphabet)], (0, 1), alphabet=alphabet))


def test_long_words_are_shortened():
    action = action_over("a", "b")
    assert (action.spell(("a", "b")), action.spell(())) == ("'ab'", "the empty word")
    assert action.spell(tuple("ab" * 20)) == repr("ab" * 20)
    assert action.spell(tuple("a" * 60 + "b")) == f"'{'a' * 20}…b' (61 letters)"
    assert action_over(10, "x").spell((10,) * 41).endswith(" … 10' (41 letters)")


def test_letters_with_spaces_are_told_apart():
    """'a b' was one letter or two."""
    action = action_over("a b", "a")
    assert action.spell(("a b", "a")) == '["a b", "a"]'
    assert action.spell(("a b",) * 41).endswith(' … ["a b"] (41 letters)')
    assert action_over("a", "ab").spell(("a", "ab")) == "'a ab'"


def test_letters_that_act_alike_are_kept_once():
    action = Action.of(zoo.length_mod(3, letters="abc"))
    assert (action.letters.tolist(), action.names) == ([[1, 2, 0]], ("a",))
    action = Action.of(zoo.flip_flop())
    assert action.word([0, 1, 2]) == ("s", "r", ".")
    assert action.follow(0, [0, 2, 1]) == [0, 1, 1, 0]
    assert action.successors.tolist() == [[1, 0, 0], [1, 0, 1]]
