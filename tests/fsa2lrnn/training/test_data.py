"""Words come from the seed, keep to their sampler, and carry the machine's own outputs."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn.automata import MooreMachine, zoo
from fsa2lrnn.automata.counting import UNCOUNTED
from fsa2lrnn.automata.language import output_classes
from fsa2lrnn.automata.table_kernels import settled
from fsa2lrnn.automata.zoo.paper import evaluate
from fsa2lrnn.errors import BudgetExceeded, UnsupportedFormat
from fsa2lrnn.testing.strategies import machines
from fsa2lrnn.training.chance import shares_of
from fsa2lrnn.training.data import (
    Sampler,
    make_sampler,
    walk_compiled,
    walk_composed,
    words,
)

ARITHMETIC = "task:mod_arith(5)"


def drawn(source, sampler, size=64, length=41, seed=0):
    machine = MooreMachine.from_source(source)
    made = words(machine, make_sampler(sampler, machine, source))
    return machine, made, *made.batch(size, length, made.generator(seed))


def read(made, labels):
    return [None if label == UNCOUNTED else made.outputs[label] for label in labels.tolist()]


@given(machines(), st.sampled_from(["uniform", "live", "balanced"]), st.integers(0, 2**32 - 1))
def test_labels_are_the_outputs_of_the_machine(machine, sampler, seed):
    made = words(machine, make_sampler(sampler, machine))
    tokens, labels = made.batch(5, 9, made.generator(seed))
    assert tokens.dtype == labels.dtype == torch.int64
    assert tokens.shape == labels.shape == (5, 9)
    for word, row in zip(tokens, labels, strict=True):
        assert [made.outputs[j] for j in row] == machine.transduce([machine.alphabet[a] for a in word])


@given(machines(), st.sampled_from(["uniform", "live", "balanced"]), st.integers(0, 3), st.integers(0, 17))
def test_both_walks_agree(machine, sampler, size, length):
    made = words(machine, make_sampler(sampler, machine))
    cells = torch.randint(made.n_draws, (size, length), generator=made.generator(length))
    starts = torch.randint(machine.n_states, (size,), generator=made.generator(size))
    compiled = walk_compiled(made.next_state, made.letters, cells, starts)
    composed = walk_composed(made.next_state, made.letters, cells, starts)
    assert all(torch.equal(a, b) for a, b in zip(compiled, composed, strict=True))


@pytest.mark.parametrize("sampler", ["uniform", "live", "task"])
def test_the_seed_says_which_words(sampler):
    first, again, other = (drawn(ARITHMETIC, sampler, seed=seed)[2:] for seed in (7, 7, 8))
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    assert not torch.equal(first[0], other[0])


def test_words_go_on_where_they_stopped():
    machine = MooreMachine.from_source(ARITHMETIC)
    made = words(machine, make_sampler("task", machine, ARITHMETIC))
    generator, walks, pieces = made.generator(0), made.begin(6), []
    for length in (1, 0, 4, 8):
        batch, walks = made.advance(walks, length, generator)
        pieces.append(batch)
    tokens, labels = (torch.cat(parts, 1) for parts in zip(*pieces, strict=True))
    assert walks.position == 13
    for word, row in zip(tokens, labels, strict=True):
        transduced = machine.transduce([machine.alphabet[a] for a in word])
        assert read(made, row)[::2] == transduced[::2]
        assert (row[1::2] == UNCOUNTED).all()


def test_uniform_letters_are_uniform():
    _, _, tokens, _ = drawn("task:sum_mod(5)", "uniform", 1000, 50)
    shares = tokens.flatten().bincount(minlength=5) / tokens.numel()
    assert (shares - 0.2).abs().max() < 0.008  # 4.5 standard deviations


def test_modular_arithmetic_has_digits_and_operators_in_turn_and_counts_after_digits():
    machine, made, tokens, labels = drawn(ARITHMETIC, "task")
    assert made.outputs == (0, 1, 2, 3, 4)
    assert (labels[:, 1::2] == UNCOUNTED).all()
    for word, row in zip(tokens, labels, strict=True):
        text = "".join(machine.alphabet[a] for a in word)
        assert read(made, row)[-1] == evaluate(text) % 5
    digits, operators = tokens[:, ::2].flatten().bincount(), tokens[:, 1::2].flatten().bincount()[5:]
    assert (digits / digits.sum() - 1 / 5).abs().max() < 0.06
    assert (operators / operators.sum() - 1 / 3).abs().max() < 0.06
    assert (made.fit(40), made.fit(500), made.fit(39), made.fit(1)) == (39, 499, 39, 1)


def test_all_completions_of_modular_arithmetic_have_the_same_task():
    completed = [drawn(f"task:mod_arith(5, completion={name})", "task") for name in ("sink", "ignore", "register")]
    texts = [[read(made, row) for row in labels] for _, made, _, labels in completed]
    assert texts[0] == texts[1] == texts[2]
    assert all(torch.equal(tokens, completed[0][2]) for _, _, tokens, _ in completed)


@pytest.mark.parametrize("source", ["task:sum_mod(4)", "task:even_pair(3)", "regex:(ab)*", "a file.json"])
def test_other_tasks_of_the_paper_are_uniform(source):
    machine = zoo.even_pair(3)
    choices, scored, also = make_sampler("task", machine, source)
    assert choices.all()
    assert also is None
    assert scored == (True,)


@given(machines())
def test_live_words_settle_only_where_they_must(machine):
    sinks = settled(machine.delta, output_classes(machine.outputs))
    for q in range(machine.n_states):
        assert sinks[q] == (len(outputs_from(machine, q)) == 1)
    choices = make_sampler("live", machine).choices[0]
    for q in range(machine.n_states):
        leads = sinks[machine.delta[:, q]]
        assert choices[q].tolist() == ([True] * len(leads) if leads.all() else (~leads).tolist())


def outputs_from(machine, start):
    seen, waiting = {start}, [start]
    for q in waiting:
        new = {int(r) for r in machine.delta[:, q]} - seen
        seen |= new
        waiting += new
    return {machine.outputs[q] for q in seen}


def test_balanced_words_of_ab_star_are_accepted_and_rejected():
    """The guide's example drew rejected words only: a network that always rejects had "learned" it."""
    machine = MooreMachine.from_regex("(ab)*")
    shares = {name: shares_of(words(machine, make_sampler(name, machine)), 40)[True] for name in ("task", "balanced")}
    assert shares["task"] < 1e-6
    assert shares["balanced"] == pytest.approx(0.5)
    labels = words(machine, make_sampler("balanced", machine)).batch(10, 40, torch.Generator().manual_seed(0)).labels
    assert labels[:, -1].unique().tolist() == [0, 1]


def test_live_brackets_stay_open_to_an_answer():
    machine, _, tokens, _ = drawn("task:dyck(2, 3)", "live", length=60)
    sink = settled(machine.delta, output_classes(machine.outputs))
    assert sink.sum() == 1
    for word in tokens:
        assert not sink[machine.run([machine.alphabet[a] for a in word])]
    uniform = drawn("task:dyck(2, 3)", "uniform", length=60)[2]
    assert all(sink[machine.run([machine.alphabet[a] for a in word])] for word in uniform)


def test_labels_follow_the_outputs_that_are_asked_for():
    machine = zoo.sum_mod(3)
    made = words(machine, make_sampler("uniform", machine), (2, 1, 0, "other"))
    tokens, labels = made.batch(2, 5, made.generator(0))
    assert labels[0].tolist() == [2 - total for total in machine.transduce([machine.alphabet[a] for a in tokens[0]])]
    with pytest.raises(UnsupportedFormat, match="output 2 of the machine is none of 0, 1: take the machine"):
        words(machine, make_sampler("uniform", machine), (0, 1))


def test_an_unknown_sampler_is_named():
    with pytest.raises(UnsupportedFormat, match="sampler 'even' is not known: choose one of uniform, live, balanced"):
        make_sampler("even", zoo.parity())


def test_a_length_without_an_output_that_counts():
    machine = zoo.parity()
    made = words(machine, Sampler(np.ones((3, 2, 2), bool), (False, False, True)))
    assert (made.fit(8), made.fit(6), made.fit(3)) == (6, 6, 3)
    with pytest.raises(UnsupportedFormat, match="length 2: no word"):
        made.fit(2)


def test_choices_without_a_small_common_multiple():
    n = 60
    machine = MooreMachine(np.tile(np.arange(n), (n, 1)), range(n))
    sampler = Sampler(np.tri(n, dtype=bool)[None], (True,))  # 1 … 60 choices
    with pytest.raises(BudgetExceeded, match='use the sampler "uniform"'):
        words(machine, sampler)
