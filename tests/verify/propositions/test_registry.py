"""The runner compares answers with expectations, trials shrink and repeat, and ids are looked up."""

import json

import pytest
from hypothesis import strategies as st

from fsa2lrnn.errors import UnsupportedFormat
from verify import propositions
from verify.propositions import FAST, REGISTRY, Effort, Outcome, Proposition, Proved, Refuted, Tested, Undecided
from verify.propositions.registry import refuted, trial

SMALL = Effort("small", examples=40, exhaustive=1)


def proposition(answer, expects):
    return Proposition("p", "Statement.", "none", "here", lambda effort: answer, expects)  # noqa: ARG005


@pytest.mark.parametrize("answer", [Proved("by hand", 1), Tested("cases", 3, 0), refuted("no"), Undecided("1 s")])
@pytest.mark.parametrize("expects", [Proved, Tested, Refuted, Undecided])
def test_an_answer_is_expected_if_it_is_of_the_kind_named(answer, expects):
    (outcome,) = propositions.run([proposition(answer, expects)])
    assert outcome == Outcome(outcome.proposition, answer)
    assert outcome.expected == (type(answer) is expects)


def test_answers_are_no_truth_values():
    with pytest.raises(TypeError, match="Tested is no truth value"):
        bool(Tested("", 1, 0))


def test_a_trial_counts_and_repeats():
    seen = []

    def fault(n):
        seen.append(n)

    first = trial("integers", st.integers(), fault, SMALL)
    before = list(seen)
    seen.clear()
    assert trial("integers", st.integers(), fault, SMALL) == first == Tested("integers", 40, 0)
    assert seen == before
    seen.clear()
    assert trial("integers", st.integers(), fault, Effort("other", 40, 1, seed=1)).seed == 1
    assert seen != before


def test_a_trial_that_exhausts_its_cases_says_how_many_there_were():
    assert trial("a bit", st.booleans(), lambda _: None, SMALL) == Tested("a bit", 2, 0)


def test_a_trial_gives_the_smallest_case():
    answer = trial("lists", st.lists(st.integers(0, 99)), lambda xs: f"sum {sum(xs)}" if sum(xs) > 10 else None, SMALL)
    assert answer == refuted("sum 11", case="[11]")


def test_an_error_in_a_checker_is_not_taken_for_a_refutation():
    with pytest.raises(ZeroDivisionError):
        trial("integers", st.integers(), lambda n: None if 1 / n else "", SMALL)


def test_progress_is_told():
    told = []
    effort = Effort("watched", 5, 1, progress=lambda done, total: told.append((done, total)))
    assert list(effort.track("abc")) == ["a", "b", "c"]
    trial("integers", st.integers(), lambda _: None, effort)
    assert told == [(0, 3), (1, 3), (2, 3), *((k, 5) for k in range(1, 6))]


def test_selection_keeps_the_registry_order():
    assert propositions.select(REGISTRY, []) == list(REGISTRY)
    assert [p.id for p in propositions.select(REGISTRY, ["eq-7", "prop-1-words"])] == ["prop-1-words", "eq-7"]
    with pytest.raises(
        UnsupportedFormat, match="proposition 'eq-8' is not in the registry: choose from prop-1-words, "
    ):
        propositions.select(REGISTRY, ["eq-8"])


def test_witnesses_are_data_that_json_holds():
    wanted = [p for p in REGISTRY if p.expects is Refuted]
    assert len(wanted) >= 5
    for outcome in propositions.run(wanted, SMALL):
        json.dumps(dict(outcome.answer.data))


def test_ids_are_distinct():
    assert len({p.id for p in REGISTRY}) == len(REGISTRY)
    assert FAST.examples < propositions.DEEP.examples
