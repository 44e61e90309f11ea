"""Proofs on their code, and what must not be proved."""

import shutil

import pytest
import torch

pytest.importorskip("transformers")

from fsa2lrnn import MooreMachine, zoo
from fsa2lrnn.errors import InvalidMachine, UnsupportedFormat
from fsa2lrnn.extra.huggingface.folder import load, run
from fsa2lrnn.extra.huggingface.proof import prove
from fsa2lrnn.scope import LETTERS
from fsa2lrnn.verdicts import Proved, Refuted, Undecided
from fsa2lrnn.versions import environment


def test_a_proof_counts_what_it_saw_and_names_the_code(exported):
    model = load(exported("group(S3, transpositions)")[0])
    verdict = prove(model, zoo.group("S3", "transpositions"))
    assert isinstance(verdict, Proved)
    assert (verdict.pairs, verdict.transitions) == (7, 14)  # the empty word and six states
    assert verdict.covers.shapes == LETTERS
    assert "OlmoHybridForCausalLM of transformers " in str(verdict.covers)
    assert verdict.covers.environment == environment()


def test_a_proof_carries_the_digest_of_all_files(exported, tmp_path):
    folder = shutil.copytree(exported("parity")[0], tmp_path / "copy")
    digest = prove(load(folder)).digest
    assert digest == prove(load(exported("parity")[0])).digest
    config = folder / "generation_config.json"
    config.write_text(config.read_text().replace("\n", "\n\n"))
    assert prove(load(folder)).digest != digest


@pytest.mark.parametrize("task", ["parity", "ab_star", "group(S3, transpositions)"])
def test_another_machine_is_refuted_with_a_word(exported, task):
    model = load(exported(task)[0])
    machine = model.machine
    wrong = MooreMachine(machine.delta, (*machine.outputs[:-1], "other"), machine.start, machine.alphabet)
    verdict = prove(model, wrong)
    assert isinstance(verdict, Refuted)
    assert verdict.failure.wanted == tuple(wrong.transduce(list(verdict.word)))
    assert verdict.failure.given == tuple(machine.transduce(list(verdict.word)))
    assert verdict.failure.position == len(verdict.word)


@pytest.mark.parametrize("weight", ["k_proj", "v_proj", "b_proj", "o_proj"])
def test_a_changed_weight_is_noticed(exported, weight):
    model = load(exported("group(S3, transpositions)")[0])
    parameter = getattr(model.model.model.layers[0].linear_attn, weight).weight
    with torch.no_grad():
        parameter[parameter != 0] *= -1
    assert not isinstance(prove(model, budget=200), Proved)


def test_a_state_that_drifts_is_never_proved(exported):
    model = load(exported("group(S3, transpositions)")[0])
    with torch.no_grad():
        model.model.model.layers[0].linear_attn.k_proj.weight[0] *= 1.01
    assert isinstance(prove(model, budget=100), Undecided | Refuted)


def test_a_window_that_is_read_makes_other_states(exported):
    model = load(exported("parity")[0])
    before = prove(model).pairs
    with torch.no_grad():
        model.model.model.layers[0].linear_attn.conv1d.weight[0, 0, 0] = 1e-3  # of a query, three letters ago
    after = prove(model)
    assert not isinstance(after, Proved) or after.pairs > before


def test_attention_that_adds_something_is_refused(exported):
    model = load(exported("parity")[0])
    with torch.no_grad():
        model.model.model.layers[-1].self_attn.v_proj.weight[0, 0] = 1
    with pytest.raises(UnsupportedFormat, match="layer 1 attends to more than zeros"):
        prove(model)


def test_scores_that_overflow_where_two_letters_meet_are_no_proof(exported):
    """One token a call from a state sees no pair of letters, but in a whole word the second attends to the first."""
    model = load(exported("parity")[0])
    attends = model.model.model.layers[-1].self_attn
    with torch.no_grad():
        attends.q_proj.weight[:, 1] = attends.k_proj.weight[:, 0] = 100.0
        attends.q_norm.weight.fill_(1e30)
        attends.k_norm.weight.fill_(1e30)
    by_one, whole = (run(model, torch.tensor([0, 1, 0]), chunk)[0].tolist() for chunk in (1, 3))
    n, outputs = len(model.machine.alphabet), model.outputs
    right = [
        n + outputs.index(output) for output in model.machine.transduce([model.machine.alphabet[a] for a in (0, 1, 0)])
    ]
    assert right not in (by_one, whole)  # as their code runs it, so nothing may be proved
    with pytest.raises(UnsupportedFormat, match=r"layer 1 attends to more than zeros \(q_proj.weight\)"):
        prove(model)


def test_other_letters_are_refused(exported):
    with pytest.raises(InvalidMachine):
        prove(load(exported("parity")[0]), zoo.ab_star())


@pytest.mark.usefixtures("out_of_time")
def test_a_time_limit_that_has_passed_is_said(exported):
    verdict = prove(load(exported("group(S3, transpositions)")[0]), seconds=3)
    assert isinstance(verdict, Undecided)
    assert (verdict.checked_length, verdict.seconds) == (0, 3)
