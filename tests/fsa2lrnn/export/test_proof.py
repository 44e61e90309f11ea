"""Proofs on the code of the packages, and what must not be proved; modules, cards and tokenizers."""

import re
import shutil

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import fsa2lrnn
from fsa2lrnn import MooreMachine, Proved, Refuted, Undecided, symbols, zoo
from fsa2lrnn.errors import CheckpointError, InvalidMachine, UnsupportedFormat
from fsa2lrnn.export import target
from fsa2lrnn.export.folder import SteppedModule, load, run
from fsa2lrnn.export.huggingface import is_prefix_free, tokenizer, vocabulary
from fsa2lrnn.export.whole_model import prove
from fsa2lrnn.verdicts import LETTERS
from fsa2lrnn.verification.coverage import environment

pytest.importorskip("transformers")


def test_proofs_count_and_carry_digests(exported, tmp_path):
    model = load(exported("group(S3, transpositions)")[0])
    verdict = prove(model, zoo.group("S3", "transpositions"))
    assert isinstance(verdict, Proved)
    assert (verdict.pairs, verdict.transitions) == (7, 14)  # the empty word and six states
    assert verdict.covers.shapes == LETTERS
    assert "OlmoHybridForCausalLM of transformers " in str(verdict.covers)
    assert verdict.covers.environment == environment()
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


def test_drift_and_windows_are_not_proved(exported):
    model = load(exported("group(S3, transpositions)")[0])
    with torch.no_grad():
        model.model.model.layers[0].linear_attn.k_proj.weight[0] *= 1.01
    assert isinstance(prove(model, budget=100), Undecided | Refuted)
    model = load(exported("parity")[0])
    before = prove(model).pairs
    with torch.no_grad():
        model.model.model.layers[0].linear_attn.conv1d.weight[0, 0, 0] = 1e-3  # of a query, three letters ago
    after = prove(model)
    assert not isinstance(after, Proved) or after.pairs > before


def test_attention_other_letters_and_architectures_are_refused(exported):
    model = load(exported("parity")[0])
    with torch.no_grad():
        model.model.model.layers[-1].self_attn.v_proj.weight[0, 0] = 1
    with pytest.raises(UnsupportedFormat, match="layer 1 attends to more than zeros"):
        prove(model)
    with pytest.raises(InvalidMachine):
        prove(load(exported("parity")[0]), zoo.ab_star())
    with pytest.raises(
        CheckpointError, match="loads as a OlmoHybridForCausalLM, where a Mamba2ForCausalLM was written"
    ):
        target("mamba-2").code.load(exported("ab_star")[0])


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


@pytest.mark.usefixtures("out_of_time")
def test_a_time_limit_that_has_passed_is_said(exported):
    verdict = prove(load(exported("group(S3, transpositions)")[0]), seconds=3)
    assert isinstance(verdict, Undecided)
    assert (verdict.checked_length, verdict.seconds) == (0, 3)


@pytest.mark.parametrize("rope", [{"rope_type": "linear", "factor": 1e-38}, {"rope_type": "longrope"}])
def test_angles_that_need_not_be_finite_are_no_proof(exported, rope):
    model = load(exported("parity")[0])
    rotary = model.model.model.rotary_emb
    rotary.rope_type = rope["rope_type"]
    rotary.inv_freq /= rope.get("factor", 1)
    with pytest.raises(UnsupportedFormat, match=f"rotary frequencies of type '{rope['rope_type']}', up to "):
        prove(model)
    rotary.rope_type = "default"
    if "factor" in rope:
        with pytest.raises(UnsupportedFormat, match=r"rotary frequencies of type 'default', up to 1e\+38"):
            prove(model)


@pytest.mark.parametrize("layer", ["olmo-hybrid", "qwen3-next"])
def test_no_output_depends_on_the_position(exported, layer):
    """Up to the largest number of int64, beyond `max_position_embeddings` too."""
    model = load(exported("flip_flop", layer)[0])
    assert "at every position" in model.code.describe(model.model)
    word = torch.tensor([[0, 1, 2, 0, 1, 0]])
    with torch.no_grad():
        wanted = model.model(input_ids=word).logits
        for first in (1, 2**20 - 3, 2**24, 2**40, 2**63 - 6):
            positions = (first + torch.arange(6))[None]
            assert torch.equal(model.model(input_ids=word, position_ids=positions).logits, wanted)
    assert "position" not in (other := load(exported("flip_flop", "mamba-2")[0])).code.describe(other.model)


@pytest.fixture
def wrapped(exported):
    model = load(exported("ab_star", "mamba-2")[0])
    return fsa2lrnn.wrap(SteppedModule(model), model.machine.alphabet, model.outputs)


def test_letters_one_by_one_are_the_word(wrapped):
    tokens = torch.tensor([[0, 1, 0, 1, 1], [0, 1, 0, 1, 0]])
    logits, _ = wrapped.advance(tokens, wrapped.initial_state(2))
    assert torch.equal(logits, wrapped(tokens))
    wanted = [zoo.ab_star().transduce(["ab"[a] for a in word]) for word in tokens.tolist()]
    assert [[wrapped.outputs[j] for j in row] for row in logits.argmax(-1).tolist()] == wanted


def test_falsify_finds_a_word_for_another_machine_and_none_for_its_own(wrapped):
    machine = zoo.ab_star()
    assert not isinstance(fsa2lrnn.falsify(wrapped, machine, fsa2lrnn.Budget(seconds=5)), Refuted)
    other = MooreMachine(machine.delta, [not output for output in machine.outputs], 0, machine.alphabet)
    assert isinstance(fsa2lrnn.falsify(wrapped, other, fsa2lrnn.Budget(seconds=5)), Refuted)


@pytest.mark.parametrize("is_letter", [True, False])
def test_a_letter_or_a_padding_token_put_out_is_no_number(exported, is_letter):
    """The vocabulary may be longer than the letters and the outputs: no token of the rest is an output."""
    model = load(exported("ab_star", "mamba-2")[0])
    token, head = 0 if is_letter else len(model.machine.alphabet) + len(model.outputs), model.model.lm_head
    with torch.no_grad():
        head.weight = torch.nn.Parameter(torch.cat([head.weight, torch.zeros_like(head.weight[:1])]))
        head.weight[token] = 1e6
    assert SteppedModule(model)(torch.tensor([[0, 1]])).isnan().all()


def test_a_card_says_what_is_proved_and_its_example_runs(exported, capsys):
    folder, written = exported(zoo.group("S3", "transpositions"), "olmo-hybrid")
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert f"`{written.verdict.digest}`" in card
    assert load(folder).digest == written.verdict.digest  # the card is not part of it
    assert f"{written.verdict.pairs} joint states (model state" in card
    assert str(written.verdict.covers) in card
    assert written.plan.how in card
    (code,) = re.findall(r"```python\n(.*?)```", card, re.DOTALL)
    exec(compile(code.replace("FOLDER", str(folder)), "card", "exec"), {})
    expected = re.search(r"# (\[.*\])$", code, re.MULTILINE)[1]
    assert capsys.readouterr().out.strip() == expected


@pytest.mark.parametrize(
    ("alphabet", "text"),
    [("ab", "abba"), ("ab", "a b\n b a"), (("up", "down"), "up down down up"), (("up", "down"), "updown downup"),
     (("(1,2)", "(1,2,3)"), "(1,2)(1,2,3) (1,2,3)(1,2)"), (("a", "ab"), "a ab ab a")],
)  # fmt: skip
def test_text_becomes_numbers_of_letters(alphabet, text):
    pytest.importorskip("transformers")
    made = tokenizer(alphabet, (False, True))
    assert (made(text)["input_ids"], made.decode([len(alphabet) + 1])) == ([0, 1, 1, 0], "=accept")


@pytest.mark.parametrize("letters", ["<pad>x", "<unk>", ("<p", "ad>"), ("k", "<u", "n>")])
def test_letters_that_may_spell_a_special_token_are_refused(letters):
    with pytest.raises(UnsupportedFormat, match=r"letters may spell '<(pad|unk)>'"):
        tokenizer(letters, (False, True))


@given(
    st.lists(st.text(st.characters(codec="utf-8"), min_size=1, max_size=3), min_size=1, max_size=4, unique=True),
    st.data(),
)
def test_words_are_read_as_their_letters_or_the_tokenizer_is_refused(letters, data):
    try:
        made = tokenizer(letters, (False, True))
    except UnsupportedFormat:
        return
    word = data.draw(st.lists(st.integers(0, len(letters) - 1), max_size=6))
    assert made(" ".join(letters[a] for a in word))["input_ids"] == word
    if symbols.is_character_alphabet(tuple(letters)) or is_prefix_free(letters):
        assert made("".join(letters[a] for a in word))["input_ids"] == word


def test_other_letters_are_unknown_and_short_texts_are_padded():
    pytest.importorskip("transformers")
    made = tokenizer("ab", (False, True))
    assert (made("abc")["input_ids"], made.convert_tokens_to_ids(["<pad>", "<unk>"])) == ([0, 1, 5], [4, 5])
    padded = made(["ab", "a"], padding=True)
    assert (padded["input_ids"], padded["attention_mask"]) == ([[0, 1], [0, 4]], [[1, 1], [1, 0]])
    assert made.decode([3, 4], skip_special_tokens=True) == "=accept"


def test_a_tokenizer_that_reads_other_numbers_is_refused(monkeypatch):
    """As one of another version may: here words are taken apart into characters."""
    pytest.importorskip("transformers")
    monkeypatch.setattr(symbols, "is_character_alphabet", lambda _: True)
    with pytest.raises(UnsupportedFormat, match=r"letters \['ab', 'a', 'b'\] are read as \[1, 2, 1, 2\]"):
        tokenizer(("ab", "a", "b"), (False, True))


def test_half_a_character_is_no_letter():
    with pytest.raises(UnsupportedFormat, match="half a character"):
        vocabulary(["\ud800", "a"], [True])
