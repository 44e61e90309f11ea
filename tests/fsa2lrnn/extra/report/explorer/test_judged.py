from fsa2lrnn import compile_machine, zoo
from fsa2lrnn.automata import MooreMachine
from fsa2lrnn.extra.report.explorer.page import constructed, searched


def test_a_failing_word_fails_and_its_length_is_said():
    machine = zoo.parity()
    model = compile_machine(MooreMachine([[0, 1], [1, 1]], machine.outputs, 0, machine.alphabet))
    shown = searched(model, machine, 1.0)
    (word,) = shown.failing
    assert model.transduce(word)[-1] != machine.transduce(word)[-1]
    assert shown.said == "Fails on a word of 2 letters, the shortest."
    assert shown.kind == "learned"


def test_models_whose_states_close():
    machine = zoo.parity()
    closed = searched(compile_machine(machine), machine, 1.0).said
    assert closed.startswith("No word fails that is read letter by letter: its states close")
    said = constructed(compile_machine(machine), machine).said
    assert said.startswith("Proved right on all words: 2 joint states closed, bit for bit, in float32, by the scans ")
    assert said.endswith("every shape of call, batch and number of threads.")
    other = MooreMachine([[0, 1], [1, 1]], machine.outputs, 0, machine.alphabet)
    assert constructed(compile_machine(machine), other).said == "Compiled from the automaton."
