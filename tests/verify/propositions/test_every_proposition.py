"""The registry holds what it says; and each checker, shown something broken, does not give the answer it should."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from experiments.studies.table2.chance import ChanceLevel
from fsa2lrnn import MooreMachine, compile_recurrence, zoo
from fsa2lrnn.canary.machines import exchange, recency
from fsa2lrnn.cascade.bound import prime_bound
from fsa2lrnn.cascade.coordinates import Cover
from fsa2lrnn.compile.choice import best_cascade, choose
from fsa2lrnn.compile.lower import compile_machine, lower
from fsa2lrnn.export.confused_words import confused
from fsa2lrnn.families import Impossibility, represent
from fsa2lrnn.nn.layers import index
from fsa2lrnn.nn.layers.liquid_s4 import LiquidS4Config
from fsa2lrnn.nn.scans import pscan, sequential
from fsa2lrnn.nn.scans.cpu import schedule
from fsa2lrnn.probes import OPERATORS
from fsa2lrnn.probes.random_words import Magnitudes
from fsa2lrnn.weighted import EqualFunctions, SeparatingWord, compare
from verify import mutants
from verify.propositions import REGISTRY, Effort, Proved, Refuted, Tested, contradiction, run
from verify.propositions.probes import roots_of_e8
from verify.propositions.stability import Ball

SMOKE = Effort("smoke", examples=25, exhaustive=1)


def without_a_letter(machine, **options):
    return mutants.drop_letter(compile_machine(machine, **options), machine.alphabet[0])


def forgetful():
    """The canary of exchanges, where a letter leads every permutation to the first."""
    canary = exchange(3)
    layers = tuple(
        tuple(head._replace(table=((0,) * len(head.table[0]), *head.table[1:])) for head in heads)
        for heads in canary.layers
    )
    return replace(canary, layers=layers)


def complemented(machine, **options):
    other = MooreMachine(machine.delta, [not output for output in machine.outputs], 0, machine.alphabet)
    return compile_machine(other, **options)


def one_hot(b, _p, _centred):
    return torch.eye(b).double(), torch.ones(b).double()


def tampered(machine, family):
    """A certificate for the two states in the wrong order."""
    verdict = represent(machine, family)
    return replace(verdict, states=verdict.states[::-1]) if isinstance(verdict, Impossibility) else verdict


def liar(machine, family):
    """Impossible, whatever the machine."""
    return replace(represent(zoo.subtraction(3), family), machine=machine)


def always(machine):
    return lambda *_: machine


def corners(b):
    """Extreme points of the unit ball of the largest-entry norm, whose products grow."""
    return iter(np.stack(np.meshgrid(*[[-1, 1]] * b), -1).reshape(-1, b).tolist())


def quartic(A, v, _x0):
    b = A.shape[-1]
    _ = torch.zeros(A.shape[2] * b**3, 1) @ torch.zeros(1, b)
    return v


def diagonal_liquid(generator):
    return np.diag(generator.integers(-2, 3, 2)), {letter: generator.integers(-2, 3, 2) for letter in "01-"}


def wrong_weight(recurrence, dtype):
    return mutants.wrong_gate_weight(lower(recurrence, dtype), 0, 0, 0)


def undecomposed(maps, _start):
    states = np.arange(maps.shape[1])
    return Cover(maps, states, states[:, None], (0,))


def always_a_cascade(machine):
    return replace(choose(machine), form="cascade", decomposition=best_cascade(machine))


def certain(_effort, tasks):
    """Guesses that are always right."""
    return {task: ChanceLevel(0, 1.0, 1.0, 0.0, (1.0, 1.0)) for task in tasks}


def longer_word(f, g):
    verdict = compare(f, g)
    return replace(verdict, word=(*verdict.word, "a")) if isinstance(verdict, SeparatingWord) else verdict


def larger_bound(machine, family):
    found = represent(machine, family, readout="linear")
    return replace(found, prefixes=(*found.prefixes, (0,)))


THREE_WORDS = {"0-1": 1, "1-0": -1, "0-0-1": -1}
EARLY = mutants.early_transitions(pscan)
BROKEN = {
    "prop-1-words": [{"words": THREE_WORDS}, {"commutation": contradiction.dense}],
    "prop-2-words": [{"words": contradiction.PARITY}, {"commutation": contradiction.dense}],
    "prop-1-2-integers": [
        {"words": THREE_WORDS},
        {"words": {**contradiction.PAPER, "0-0": 1, "1-1": -1}},
        {"machine_of": always(zoo.subtraction(2))},
    ],
    "prop-1-T3": [{"decide": tampered}, {"machine_of": lambda M, _: zoo.length_mod(M)}],
    "prop-2-T3": [{"decide": tampered}, {"machine_of": lambda M, _: zoo.sum_mod(M)}],
    "prop-1-modulo-2": [{"words": contradiction.PAPER}, {"words": THREE_WORDS}],
    "prop-2-modulo-2": [{"machine": zoo.subtraction(3)}, {"machine": zoo.subtraction(2)}],
    "block-diagonal": [{"compiler": lambda m: without_a_letter(m)}],
    "liquid-s4-diagonal": [{"commutation": contradiction.dense}],
    "liquid-s4-dense": [{"weights": diagonal_liquid}],
    "liquid-s4-subtraction": [
        {"words": contradiction.PAPER},
        {"words": contradiction.commutator("", "0", "01", "0-")},
        {"commutation": contradiction.dense},
    ],
    "T3-grid": [{"decide": liar}],
    "T62-grid": [{"entries": ((0, 0.5, 1),)}, {"decide": lambda _machine, _kind: None}],
    "T69-grid": [
        {"decide": lambda _machine, _kind: None},
        {"decide": lambda machine, _kind: confused(machine, "diagonal-layer-1")},
    ],
    "eq-7": [{"ball": Ball("largest entry", corners, lambda v: max(map(abs, v)))}],
    "eq-6": [{"apply": mutants.shrinking_rule}, {"apply": mutants.unclipped_rule}],
    "norm-order": [{"norm": lambda v, p: float(v.abs().sum()) * p}],
    "growth-bound": [{"bound": lambda _b, _p: 1.0}, {"bound": lambda b, _p: float(b)}],
    "p-1.2-stable": [{"apply": mutants.shrinking_rule}, {"block": one_hot}],
    "p-1.2-released": [{"apply": mutants.shrinking_rule}, {"p": 1.0}],
    "pscan-any-ring": [
        {"scan": EARLY},
        {"scan": mutants.forgetful(pscan)},
        *({"scan": mutants.wrong_at(pscan, length)} for length in (2, 63, 64, 130)),
    ],
    "pscan-floats": [
        {"methods": {"sequential": sequential, "broken": broken}} for broken in (EARLY, mutants.wrong_at(pscan, 127))
    ],
    "pscan-index": [{"methods": {"broken": lambda t, c, q: index.sequential(t, c.flip(1), q)}}],
    "spt-schedule": [{"names": mutants.swapped_names(schedule)}, {"round_of": mutants.swapped_products}],
    "pscan-depth": [{"scan": sequential}, {"reference": pscan}],
    "pscan-work": [{"scan": mutants.twice(pscan)}, {"scan": mutants.idle(pscan)}],
    "pscan-complexity": [{"scan": mutants.idle(pscan)}],
    "pscan-quadratic": [{"scan": quartic}],
    "unit-columns": [{"tables": lambda m: mutants.reset_for_map(compile_recurrence(m, layout="dense"))}],
    "input-dependent": [{"machine_of": always(zoo.parity())}],
    "worked-examples": [{"machine_of": lambda name: zoo.from_task(name.replace("5", "7"))}],
    "T1-zoo": [{"compiler": without_a_letter}],
    "T1-small": [{"compiler": complemented}],
    "T1-random": [{"compiler": without_a_letter}],
    "T1-lowering": [{"bridge": lambda r, dtype: mutants.drop_letter(lower(r, dtype), r.alphabet[0])}],
    "T2-inside": [{"apply": mutants.shrinking_rule}],
    "T2-released": [{"apply": mutants.uncentred_rule}, {"compiler": lambda m, **_: compile_machine(m)}],
    "fixed-layers": [{"configs": {"liquid": LiquidS4Config(4, d_state=8)}}],
    "liquid-s4-released": [{"kernels": ("exact",)}],
    "only-blocks": [{"machine": zoo.even_pair(5), "families": ("lti", "diagonal-complex")}],
    "table-2-chance": [{"table": {"task:sum_mod(5)": (0.31,), "task:mod_arith(5)": (0.27,)}}, {"levels": certain}],
    "table-2-even-pair": [{"table": {"task:even_pair(5)": (0.9,)}}],
    "cascade-exact": [{"bridge": wrong_weight}],
    "cascade-random": [{"compiler": complemented}],
    "cascade-fibre": [{"compiler": lambda m, **_: compile_machine(m, form="cascade")}],
    "cascade-context": [{"size_of": lambda _maps, context, _tau: int(context.max())}],
    "cascade-holonomy": [{"cover_of": undecomposed}],
    "cascade-prime": [{"bound_of": lambda m: replace(prime_bound(m), prime=prime_bound(m).prime + 1)}],
    "cascade-auto": [{"decide": always_a_cascade}],
    "cascade-zeros": [{"shift": lambda model: model}],
    "probe-sums": [{"limit": 10}],
    "probe-roots": [{"roots": lambda: [*roots_of_e8(), (2,) * 8]}, {"roots": lambda: roots_of_e8()[:-1]}],
    "probe-inverse": [{"invert": lambda A: torch.eye(len(A)) - A}],
    **{f"probe-{name}": [{"sizes": {torch.bfloat16: Magnitudes(999)}, "gradients": False}] for name in OPERATORS},
    "probe-gates": [{"base": 0.6931}],
    "canary-exchange": [{"make": recency}, {"make": forgetful}],
    "canary-reset": [{"make": forgetful}],
    "T64-pairs": [{"decide": lambda f, g: EqualFunctions(f, g, compare(f, f).spaces)}, {"decide": longer_word}],
    "T66-grid": [
        {"decide": larger_bound},
        {"decide": lambda m, f: replace(represent(m, f, readout="linear"), answer="no")},
    ],
}


def test_every_proposition_has_a_source_and_something_broken_to_reject():
    assert list(BROKEN) == [proposition.id for proposition in REGISTRY]
    for proposition in REGISTRY:
        assert proposition.statement.endswith(".")
        assert proposition.source
        assert proposition.hypotheses
        assert proposition.check.__doc__


# What T1-zoo says, tests/test_pipeline.py checks machine by machine too.
@pytest.mark.long_cases(
    "T2-inside", "cascade-exact", "probe-delta_product", "probe-delta_rule", "probe-gated_delta_rule", "probe-kda",
    "probe-rwkv7", "pscan-work",
)  # fmt: skip
@pytest.mark.parametrize(
    "proposition",
    [pytest.param(p, id=p.id, marks=pytest.mark.slow if p.id == "T1-zoo" else ()) for p in REGISTRY],
)
def test_a_proposition_gets_the_answer_that_it_expects(proposition):
    (outcome,) = run([proposition], SMOKE)
    assert outcome.expected, outcome.answer
    if isinstance(outcome.answer, Proved | Tested):
        assert outcome.answer.cases > 0
    assert bool(proposition.instead) == (proposition.expects is Refuted)


@pytest.mark.long_cases("T1-lowering-bridge", "T1-random-compiler", "T1-zoo-compiler", "cascade-auto-decide")
@pytest.mark.parametrize(
    ("proposition", "broken"),
    [(proposition, broken) for proposition in REGISTRY for broken in BROKEN.get(proposition.id, [])],
    ids=lambda value: value.id if hasattr(value, "id") else "+".join(value),
)
def test_a_checker_rejects_what_is_broken(proposition, broken):
    answer = proposition.check(SMOKE, **broken)
    assert not isinstance(answer, proposition.expects), answer
