"""Each kind of tampering is refused, or harmless; and what is smuggled in does change outputs, where nobody looks."""

from collections import Counter

import pytest
import torch

from fsa2lrnn.automata import zoo
from fsa2lrnn.lower import compile_machine
from fsa2lrnn.verification import equivalence
from fsa2lrnn.verification.equivalence import prove_equivalent
from verify.soundness import run
from verify.soundness.tampering import HARMLESS, KINDS, SWITCH

MACHINE = zoo.sum_mod(3)
WAYS = {name: how for kind in KINDS.values() for name, how in kind.items()}
# What changes outputs once it is switched on, whatever the processor.
HARMFUL = {
    "dense": {
        *KINDS["modules"], "a weight outside the parameters", "a weight of its own type", "a table of its own type",
        "a configuration of its own type", "a function mode", "a dispatch mode",
    } - {"dropout", "an ε of its own", "one module more"},
    "index": {
        "another class of a module", "another class of model", "a method of its own", "a call of its own",
        "a method of its class", "a hook", "a hook of all modules", "a configuration of its own type",
    },
}  # fmt: skip


@pytest.fixture(autouse=True)
def _short_words(monkeypatch):
    monkeypatch.setattr(run, "_LONGEST", 6)


@torch.no_grad()
def tampered(name, layout):
    counts = Counter()
    model = compile_machine(MACHINE, layout=layout)
    run.tamper(name, WAYS[name], model, lambda victim: prove_equivalent(victim, MACHINE), MACHINE, counts)
    return counts


@pytest.mark.parametrize("layout", ["dense", "index"])
@pytest.mark.parametrize("kind", KINDS)
def test_tampering_is_refused_or_harmless(kind, layout):
    counts = {name: tampered(name, layout) for name in KINDS[kind]}
    accepted = {name for name, of_one in counts.items() if of_one["positions tampered"]}
    assert not any(map(run.wrong, counts.values()))
    assert accepted <= set(HARMLESS)
    assert accepted or kind == "modules"


@pytest.mark.parametrize("layout", ["dense", "index"])
def test_where_nobody_looks_tampering_changes_outputs(layout, monkeypatch):
    monkeypatch.setattr(equivalence, "check_modelled", lambda _: ())
    assert {name for name in HARMFUL[layout] if tampered(name, layout)["wrong tampered"]} == HARMFUL[layout]
    assert not SWITCH.on


def test_a_weight_that_changes_after_the_verdict_shows_in_the_digest(monkeypatch):
    assert not run.wrong(tampered("a mark", "dense"))
    monkeypatch.setattr(run, "model_digest", lambda _: prove_equivalent(compile_machine(MACHINE), MACHINE).digest)
    assert run.wrong(tampered("a mark", "dense")) == {"wrong digests": 1}
