"""From tables to weights."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import event, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fsa2lrnn import LRNN, MooreMachine, Proved, compile_recurrence, extract, prove_equivalent, zoo
from fsa2lrnn.compile.heads import heads_of
from fsa2lrnn.compile.integer_tables import ReluGate
from fsa2lrnn.compile.lower import DTYPES, _check_exact, compile_machine, lower
from fsa2lrnn.compile.recurrence import DenseReadout, Recurrence
from fsa2lrnn.compile.stack import GatedLayer, GatedStack
from fsa2lrnn.errors import NotExact, NotExpressible, UnsupportedFormat
from fsa2lrnn.nn import BlockLayerConfig, LRNNConfig
from fsa2lrnn.nn.scans import METHODS
from fsa2lrnn.testing.strategies import machines, words


@given(machines(), st.sampled_from(DTYPES), st.sampled_from(["sequential", "pscan"]), st.data())
def test_the_network_transduces_as_the_machine_does(machine, dtype, method, data):
    word = data.draw(words(machine))
    assert compile_machine(machine, dtype=dtype).transduce(word, method) == machine.transduce(word)


@given(machines(), st.sampled_from(DTYPES), st.sampled_from([1, 1.2, 2, 3.7]))
def test_the_tables_that_the_gates_compute_are_the_exact_ones(machine, dtype, p):
    recurrence = compile_recurrence(machine)
    model = compile_machine(machine, dtype=dtype, p=p)
    with torch.no_grad():
        A, v = model.layers[0].tables(model.embedding(torch.arange(len(machine.alphabet))))
    assert torch.equal(A, torch.tensor(recurrence.tables.A[recurrence.tables.cell]).to(dtype))
    assert torch.equal(v, torch.tensor(recurrence.tables.v[recurrence.tables.cell]).to(dtype))
    assert torch.equal(model.layers[0].x0, torch.tensor(recurrence.tables.x0).to(dtype))


@pytest.mark.parametrize(("machine", "options", "message"), [
    (zoo.sum_mod(5), {"normalisation": "paper"}, r"at block size 5 a permutation is scaled by 0\.7812 a step"),
    (zoo.parity(), {"normalisation": "paper"}, r"at block size 2 a permutation is scaled by 1\.1225 a step"),
    (MooreMachine([[0]], [True]), {"normalisation": "paper"}, "centres a block of size 1 to 0 and divides 0"),
    (zoo.parity(), {"normalisation": "batch"}, "normalisation 'batch' is not known"),
    (zoo.parity(), {"layout": "index", "normalisation": "batch"}, "normalisation 'batch' is not known"),
    (zoo.parity(), {"dtype": torch.int8}, r"is not offered: choose one of torch\.float64"),
    (zoo.parity(), {"dtype": torch.float8_e4m3fn}, r"is not offered: choose one of torch\.float64"),
])  # fmt: skip
def test_rules_and_dtypes_that_break_a_model_are_refused(stacks, machine, options, message):
    with pytest.raises((NotExpressible, UnsupportedFormat), match=message):
        compile_machine(machine, **options)
    with pytest.raises(NotExpressible, match=r"at block size 5 a permutation is scaled by 0\.7812 a step"):
        lower(stacks["registers"][0], normalisation="paper")


def test_the_paper_rule_would_indeed_break_the_model():
    """The refusal is needed: with one-hot tables under the paper rule, Sum(5) fades."""
    model = compile_machine(zoo.sum_mod(5), normalisation="none")
    model.layers[0].rule = "paper"
    x, _ = model.layers[0](model.embedding(torch.ones(1, 50, dtype=torch.int64)), model.layers[0].initial_state(1))
    assert x[0, -1].abs().max() < 1e-4


def feeding(columns, W1, W2, b1=None, b2=None):
    """A recurrence of one channel on `columns` letters whose value is the gate and whose output says whether x > 0."""
    W1, W2 = np.array(W1), np.array(W2)
    b1, b2 = (np.zeros(len(W), np.int64) if b is None else np.array(b) for W, b in ((W1, b1), (W2, b2)))
    none = np.zeros((0, columns), np.int64), np.zeros(0, np.int64), np.zeros((1, 0), np.int64)
    layer = GatedLayer(ReluGate(*none, np.array([0])), ReluGate(W1, b1, W2, b2), np.array([[0]]), (1,))
    read = DenseReadout(np.array([[1]]), np.array([0]), np.array([[0], [1]]), np.array([0, 0]))
    stack = GatedStack(np.arange(columns), (layer,), token_shift=False)
    return Recurrence(tuple(range(columns)), (False, True), stack, read)


@pytest.mark.long
@given(
    st.sampled_from(DTYPES), st.sampled_from([("clip", 1.2), ("clip", 1.0), ("clip", 7.0), ("none", 2.0)]), st.data()
)
def test_a_stack_transduces_as_its_recurrence_does(stacks, dtype, rule, data):
    recurrence, machine = stacks[data.draw(st.sampled_from(sorted(stacks)))]
    word = data.draw(words(machine))
    model = lower(recurrence, dtype, *rule)
    assert model.dtype == dtype
    for method in METHODS:
        assert model.transduce(word, method) == recurrence.transduce(word) == machine.transduce(word)


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_states_of_a_stack_are_those_of_the_recurrence_bit_for_bit(stack, dtype):
    recurrence, machine = stack
    model, x = lower(recurrence, dtype), recurrence.tables.initial()[None]
    state = model.initial_state(1)
    for a in torch.randint(len(machine.alphabet), (60,), generator=torch.Generator().manual_seed(0)).tolist():
        x = recurrence.tables.step(x)[:, a]
        _, state = model.advance(torch.tensor([[a]]), state)
        found = torch.cat([layer.x.flatten() for layer in state])
        assert torch.equal(found, torch.tensor(x[0]).to(dtype))


@pytest.mark.parametrize(("recurrence", "message"), [
    (feeding(2, [[200, 0]], [[1]], b1=[-57]), r"hidden unit 0 of layers\.0\.value adds up weights of 257 in all"),
    (feeding(2, [[0, 0], [1, 0]], [[257, 1]]), r"entry 0 of layers\.0\.value adds up weights of 257 in all"),
    (feeding(1, [[1]] * 300, [[1, -1] * 150]), r"entry 0 of layers\.0\.value adds up weights of 300 in all"),
    (feeding(2, [[1, 1]] * 2, [[128, 128]], b2=[1]), "adds up weights of 257 in all, but bfloat16 holds every"),
])  # fmt: skip
def test_integers_that_a_dtype_does_not_hold_are_refused(recurrence, message):
    with pytest.raises(NotExact, match=message):
        lower(recurrence, torch.bfloat16)
    assert lower(recurrence, torch.float16).transduce([0]) == recurrence.transduce([0])


def test_only_units_that_fire_together_are_added_up_and_what_a_gate_sees_of_the_letter_before_counts(stacks):
    # A unit for each of 300 letters, all with weight 1: one of them is 1 at a time, which bfloat16 can add.
    recurrence = feeding(300, np.eye(300, dtype=np.int64), np.ones((1, 300), np.int64))
    assert lower(recurrence, torch.bfloat16).transduce([0, 299]) == [True, True]
    gate = ReluGate(np.array([[-1], [-1]]), np.array([1, 1]), np.array([[150, 150]]), np.array([0]))
    with pytest.raises(NotExact, match="entry 0 of gate adds up weights of 300"):  # both fire while the channel is 0
        _check_exact("gate", gate, [np.array([0])], torch.bfloat16)
    recurrence, _ = stacks["registers"]
    first, second = recurrence.tables.layers
    gate = second.transition
    second = replace(second, transition=ReluGate(200 * gate.W1, gate.b1, gate.W2, gate.b2))
    recurrence = replace(recurrence, tables=replace(recurrence.tables, layers=(first, second)))
    with pytest.raises(NotExact, match=r"hidden unit 0 of layers\.1\.transition adds up weights of 401 in all"):
        lower(recurrence, torch.bfloat16)


@pytest.mark.parametrize(("dtype", "bits"), [(torch.float16, 11), (torch.float32, 24)])
def test_each_dtype_holds_the_integers_that_it_should(dtype, bits):
    held, beyond = (feeding(1, [[2**bits + more]], [[1]]) for more in (0, 1))
    assert lower(held, dtype).layers[0].value[0].weight.item() == 2**bits
    with pytest.raises(NotExact, match="choose a wider dtype"):
        lower(beyond, dtype)
    assert lower(beyond, torch.float64).layers[0].value[0].weight.item() == 2**bits + 1


@given(st.data())
def test_what_is_not_refused_adds_up_within_the_dtype(data):
    """Brute force over all inputs of two one-hot parts and a channel, on gates whose sums lie around bfloat16's 256."""
    weights = arrays(np.int64, st.tuples(st.just(3), st.just(6)), elements=st.integers(-90, 90))
    rows = arrays(np.int64, (2, 3), elements=st.integers(-2, 2))
    gate = ReluGate(data.draw(weights), data.draw(weights)[:, 0], data.draw(rows), data.draw(rows)[:, 0].copy())
    parts = [np.arange(2), np.arange(2, 5), np.array([5])]
    one, two, channel = np.eye(2, dtype=int), np.eye(3, dtype=int), np.array([[0], [1]])
    inputs = np.array([np.concatenate(u) for u in itertools.product(one, two, channel)])
    hidden = np.abs(inputs) @ np.abs(gate.W1).T + np.abs(gate.b1)
    entries = np.maximum(inputs @ gate.W1.T + gate.b1, 0) @ np.abs(gate.W2).T + np.abs(gate.b2)
    largest = max(hidden.max(), entries.max())
    try:
        _check_exact("gate", gate, parts, torch.bfloat16)
    except NotExact:
        event("refused")
    else:
        event("taken")
        assert largest <= 256
    if max(hidden.max(), np.maximum(hidden.max(0) @ np.abs(gate.W2).T + np.abs(gate.b2), 0).max()) <= 256:
        _check_exact("gate", gate, parts, torch.bfloat16)


def model(gate="table", seed=0, sizes=(3, 3)):
    torch.manual_seed(seed)
    layer = BlockLayerConfig(sizes, 8, 1, gate=gate)
    return LRNN(LRNNConfig(("a", "b"), (0, 1, 2), (layer,), embedding_dim=2, normalisation="onehot"))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("gate", ["table", "relu"])
def test_states_are_those_of_the_heads_and_outputs_the_same_in_every_scan_and_dtype(dtype, gate):
    soft = model(gate, seed=2).to(dtype)
    heads = heads_of(soft)
    tokens = torch.randint(2, (6, 30), generator=torch.Generator().manual_seed(1))
    wanted, states = soft(tokens).argmax(-1), torch.from_numpy(heads.states(tokens.numpy())[:, 1:])
    for train in (False, True):
        for method in (*soft.methods, "letters", "auto"):
            soft.train(train)
            assert torch.equal(soft(tokens, method).argmax(-1), wanted)
            x, _ = soft.layers[0](soft.first_inputs(), soft.layers[0].initial_state(6), method, tokens)
            one_hot = torch.nn.functional.one_hot(states, 3).to(dtype).flatten(-2)
            assert torch.equal(x, one_hot)


@pytest.mark.parametrize("seed", range(6))
def test_the_model_is_proved_equal_to_what_is_extracted(seed):
    soft = model(seed=seed, sizes=(4, 3))
    machine = extract(soft)
    assert isinstance(prove_equivalent(soft, machine), Proved)


def test_what_is_no_automaton_is_refused():
    with pytest.raises(UnsupportedFormat, match="the model has 1 layers under the column rule 'clip'"):
        heads_of(compile_machine(zoo.sum_mod(3)))
