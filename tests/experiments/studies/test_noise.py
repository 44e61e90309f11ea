import pytest

from experiments.studies.noise import MACHINES, Cell, draw, run_one
from fsa2lrnn import MooreMachine
from fsa2lrnn.automata.counting import UNCOUNTED

SMALL = "task:random_dfa(4, 2, seed=0, minimal=true)"


def test_the_words_are_the_same_whatever_the_labels_and_the_share_that_is_wrong_is_what_was_asked():
    machine = MooreMachine.from_source(MACHINES[3])
    clean, noisy, last = (draw(machine, 2_000, *how, seed=3) for how in ((0.0, True), (0.1, True), (0.0, False)))
    assert (clean.tokens == noisy.tokens).all()
    assert (clean.tokens == last.tokens).all()
    given = clean.labels != UNCOUNTED
    assert (given.sum(1) == clean.lengths + 1).all()
    assert (clean.labels != noisy.labels).sum() / given.sum() == pytest.approx(0.1, abs=0.01)
    assert ((last.labels != UNCOUNTED).sum(1) == 1).all()
    word = clean.tokens[0, : int(clean.lengths[0])].tolist()
    outputs = [clean.outputs[label] for label in clean.labels[0, 1 : len(word) + 1].tolist()]
    assert outputs == machine.transduce([machine.alphabet[a] for a in word])


@pytest.mark.parametrize("method", [pytest.param("test", marks=pytest.mark.slow), "alergia", "rpni", "edsm"])
@pytest.mark.filterwarnings("ignore:Automaton ")
def test_mergers_find_a_small_machine_in_many_clean_words(method):
    found = run_one(SMALL, Cell(method, "dense", 200, 0.0), 20.0)
    assert found["end"] == "done"
    assert found["exact"] == (method != "alergia" or found["states"] == 4)
