"""From weights back to the machine: where states close, and by suffixes, and the evidence for it."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fsa2lrnn.automata import MooreMachine, equivalent, zoo
from fsa2lrnn.automata.counting import UNCOUNTED, positions_of, smallest_after_first
from fsa2lrnn.compile.lower import DTYPES, compile_machine
from fsa2lrnn.errors import BudgetExceeded, NotExact, UnsupportedFormat
from fsa2lrnn.nn import LRNN, BlockLayerConfig, LRNNConfig, Readout
from fsa2lrnn.testing.strategies import machines
from fsa2lrnn.verification.extraction import ModelSystem, classes_of, extract, extract_learned
from fsa2lrnn.verification.extraction.breadth_first import to_bytes
from fsa2lrnn.verification.extraction.runner import MaskedModel, Runner, join, pick
from tests.fsa2lrnn.automata.test_language import blank_outputs
from tests.fsa2lrnn.verification.falsify.test_search import drifting


def models():
    torch.manual_seed(0)
    layers = (BlockLayerConfig((2, 2), 4, 4), BlockLayerConfig((2, 2), 4, 4))
    for options in ({"token_shift": True}, {"connection": "residual"}, {"layer_norm": True}):
        yield LRNN(LRNNConfig(("a", "b", "c"), (0, 1), layers, embedding_dim=4, readout_hidden=16, **options)).double()
    yield LRNN(LRNNConfig(("a", "b", "c"), (0, 1), layers[:1], 4, 4)).double()
    yield compile_machine(zoo.sum_mod(3), dtype=torch.float16)
    yield compile_machine(zoo.sum_mod(3), layout="index")


@pytest.mark.parametrize("i", range(6))
def test_reading_in_parts_picking_and_joining(i, monkeypatch):
    model = list(models())[i]
    tokens = np.random.default_rng(0).integers(0, 3, (7, 9))
    with torch.no_grad():
        wanted = model(torch.from_numpy(tokens), "sequential")
    runner = Runner(model)
    for batch in (1, 5, 10_000):
        monkeypatch.setattr(runner, "batch", batch)
        first, states = runner.read(runner.start(7), tokens[:, :4])
        halves = join([pick(states, slice(0, 2)), pick(states, np.arange(2, 7))])
        second, after = runner.read(halves, tokens[:, 4:8])
        torch.testing.assert_close(torch.cat([first, second], dim=1), wanted[:, :8])
        live = np.zeros((7, 3), bool)
        live[np.arange(7), tokens[:, 8]] = True
        last, final = runner.fan(after, live)
        torch.testing.assert_close(last, wanted[:, 8])
        every, _ = runner.fan(after, np.ones((7, 3), bool))
        torch.testing.assert_close(every.view(7, 3, -1)[live], last)
        assert len(to_bytes(final)) == 7


PARITY = MooreMachine([[0, 1], [1, 0]], [0, 1])
AFTER_ONES = MooreMachine([[0, 0], [1, 1]], [False, True])  # counts after the letter 1 alone


def test_only_what_counts_is_asked_and_numbers_that_are_none_are_refused():
    masked = MaskedModel(compile_machine(PARITY), positions_of((0, 1), AFTER_ONES, True))
    tokens = np.array([[1, 0, 1], [0, 0, 0], [0, 1, 1]])
    assert masked.words(tokens).tolist() == [[1, UNCOUNTED, 0], [UNCOUNTED] * 3, [UNCOUNTED, 1, 0]]
    assert masked.letters == 6  # the word without a 1 was not run
    assert masked.words(np.zeros((2, 4), np.int64)).tolist() == [[UNCOUNTED] * 4] * 2
    logits, accepting = torch.tensor([[float("nan"), 0.0]]), masked.mask.delta[1, masked.mask.start]
    assert masked.numbers(logits, np.array([masked.mask.start])).tolist() == [UNCOUNTED]
    with pytest.raises(NotExact, match="logits that count are NaN"):
        masked.numbers(logits, np.array([accepting]))


ZOO = [zoo.sum_mod(5), zoo.even_pair(3), zoo.even_pairs(), zoo.tomita(3), zoo.group("S3"), zoo.flip_flop()]


@pytest.mark.parametrize("machine", ZOO, ids=lambda machine: f"{machine.n_states} states")
def test_compiled_machines_come_back(machine):
    model = compile_machine(machine)
    assert extract_learned(model, empty_word=True).machine == machine.minimise()
    found = extract_learned(model)
    assert equivalent(found.machine, machine, empty_word=False) is None
    assert found.machine.n_states == smallest_after_first(machine).n_states
    assert found.held_out.agreement == 1
    assert found.held_out.first_disagreement is None


@settings(max_examples=25)
@given(machines(max_states=5, max_letters=3), st.sampled_from(DTYPES), st.sampled_from(["dense", "index"]))
def test_any_compiled_machine_comes_back(machine, dtype, layout):
    found = extract_learned(compile_machine(machine, dtype=dtype, layout=layout), empty_word=True)
    assert found.machine == machine.minimise()
    assert found.classes == found.machine.n_states


def test_a_model_that_drifts_is_still_a_machine_on_short_words():
    """Its states do not close, and on long words it is wrong: the evidence says from where on."""
    machine = zoo.even_pair(3)
    model = drifting(machine, 0.02)
    found = extract_learned(model, horizon=12)
    assert equivalent(found.machine, machine, empty_word=False) is None
    assert (found.machine.n_states, found.held_out.agreement) == (7, 1)
    later = extract_learned(model, horizon=2_000).held_out
    assert later.agreement < 1
    assert 12 < later.first_disagreement <= 2_000


def test_the_start_merges_where_it_can_and_else_has_the_output_of_the_model():
    odd = MooreMachine([[0, 1, 0], [1, 0, 1]], [0, 1, 1], 2)
    assert extract_learned(compile_machine(odd)).machine == MooreMachine([[0, 1], [1, 0]], [0, 1])
    assert extract_learned(compile_machine(odd), empty_word=True).machine == odd.minimise()
    pairs = extract_learned(compile_machine(zoo.even_pairs())).machine
    assert pairs == zoo.even_pairs().minimise()


def test_only_outputs_that_count_are_learned():
    """Between digits the model may say what it likes; the machine gives None there."""
    machine = zoo.mod_arith(2)
    wild = MooreMachine(
        machine.delta,
        [q % 2 if output not in (0, 1) else output for q, output in enumerate(machine.outputs)],
        machine.start,
        machine.alphabet,
    )
    legal = blank_outputs(machine, (0, 1))
    counts = MooreMachine(legal.delta, [output is not None for output in legal.outputs], 0, legal.alphabet)
    found = extract_learned(compile_machine(wild), counts=counts, horizon=15)
    assert found.machine == smallest_after_first(legal)


def test_what_cannot_be_asked_is_said():
    model = compile_machine(zoo.sum_mod(2))
    counts = MooreMachine([[0], [0]], [True], alphabet=model.alphabet)
    named = compile_machine(MooreMachine([[0, 1], [1, 0]], [None, 1], alphabet=model.alphabet))
    with pytest.raises(UnsupportedFormat, match="None is an output of the model"):
        extract_learned(named, counts=counts)
    assert extract_learned(named).machine.outputs == (None, 1)
    with torch.no_grad():
        model.layers[0].x0.fill_(float("nan"))
    with pytest.raises(NotExact, match="NaN"):
        extract_learned(model)


def random_model(**options):
    torch.manual_seed(0)
    return LRNN(LRNNConfig(("a", "b"), (0, 1), (BlockLayerConfig((2,), 4, 4),), 4, 4, **options))


@given(machines(), st.sampled_from(DTYPES), st.sampled_from(["dense", "index"]))
def test_round_trip_gives_the_minimal_machine(machine, dtype, layout):
    assert extract(compile_machine(machine, dtype=dtype, layout=layout)) == machine.minimise()


def test_states_that_do_not_close_or_have_no_output_are_refused():
    with pytest.raises(BudgetExceeded, match=r"500 states .* do not close.*\(extract --method suffixes\)"):
        extract(random_model(), max_states=500)
    model = random_model(normalisation="none")
    with torch.no_grad():
        model.layers[0].transition[2].bias.fill_(1e30)
    with pytest.raises(NotExact, match="NaN logits"):
        extract(model)


@pytest.mark.parametrize("options", [{}, {"token_shift": True}, {"connection": "residual"}, {"connection": "concat"}])
def test_a_model_that_forgets_closes_whatever_its_wiring(options, forgetful):
    model = forgetful(**options)
    machine = extract(model)
    for word in ("a", "ab", "abba", "bbbaab"):
        assert machine.transduce(word) == model.transduce(word)


def test_a_state_is_handed_over_where_a_new_tensor_would_begin():
    """Products may add up otherwise where numbers begin elsewhere: of one row, a slice is a view into its middle."""
    config = LRNNConfig(("a", "b"), (0, 1), (BlockLayerConfig((3,), 4, 4),) * 3, 5, 4, token_shift=True)
    system = ModelSystem(LRNN(config), at_once=1)
    rows = system.start()
    parts = [part for layer in system.state_of(rows) for part in layer]
    assert len(parts) == 6
    assert all(part.data_ptr() % 64 == 0 for part in parts)
    assert to_bytes(tuple(parts)).tobytes() == rows.tobytes()
    assert not any(np.shares_memory(part.numpy(), rows) for part in parts)


def asked(model, empty_word=True):
    return MaskedModel(model, positions_of(model.alphabet, None, empty_word))


def late(n):
    """Puts out 1 after n letters, and 0 until then and for ever after: states differ by long suffixes alone."""
    return MooreMachine([[*range(1, n + 2), n + 1]], [0] * n + [1, 0])


def test_long_suffixes_are_found_or_named():
    model = compile_machine(MooreMachine([*late(9).delta, range(11)], late(9).outputs))
    found = classes_of(asked(model), 100, 32, 10_000, 0)
    assert found.machine.minimise() == MooreMachine([*late(9).delta, range(11)], late(9).outputs)
    assert found.conflicts > 0
    assert (found.suffix_length, found.classes) == (9, 11)
    model = compile_machine(MooreMachine([*late(12).delta, range(14)], late(12).outputs))
    with pytest.raises(NotExact, match=r"\(.*\) and \(.*\) cannot be told apart by suffixes of up to 8 letters, but"):
        classes_of(asked(model), 100, 8, 10_000, 0)
    with pytest.raises(BudgetExceeded, match=r"2\d classes after .* raise max_classes \(20\)"):
        classes_of(asked(unbounded()), 20, 32, 10_000, 0)
    with pytest.raises(BudgetExceeded, match=r"max_words \(200\)"):
        classes_of(asked(unbounded()), 1_000, 64, 200, 0)
    with pytest.raises(NotExact, match="up to 6 letters"):
        classes_of(asked(unbounded()), 1_000, 6, 10_000, 0)


def unbounded():
    """Puts out whether there were more ones than zeros: no finite automaton."""
    step = torch.tensor([-1.0, 1.0]).reshape(2, 1, 1)
    readout = Readout.linear(torch.tensor([[0.0], [1.0]]), torch.tensor([0.5, 0.0]))
    return LRNN.from_tables(torch.ones(2, 1, 1, 1), step, torch.zeros(1, 1), readout)
