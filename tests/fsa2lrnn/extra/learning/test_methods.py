import pytest
import torch

from fsa2lrnn import LRNN, MooreMachine, compile_machine, learn, zoo
from fsa2lrnn.automata.language import equivalent
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.extra.learning import Agreement, Recipe, then_prove
from fsa2lrnn.verification import Proved, Refuted, prove_equivalent


@pytest.mark.parametrize("source", ["task:sum_mod(3)", "task:parity", "regex:(ab)*"])
def test_learned_then_proved(source):
    found = learn(source, steps=2000)
    machine = MooreMachine.from_source(source)
    assert isinstance(found.verdict, Proved)
    assert found.scope == "every word"
    assert found.machine == machine.minimise()
    assert isinstance(prove_equivalent(found.model, machine), Proved)
    assert "equal to the target on every word" in found.explain()
    assert found.network is not None
    assert found.network.config.normalisation == "onehot"


def test_the_same_seed_learns_the_same():
    first, second = (learn("task:sum_mod(3)", steps=200) for _ in range(2))
    assert first.trail == second.trail
    assert all(torch.equal(a, b) for a, b in zip(first.network.parameters(), second.network.parameters(), strict=True))


def test_out_of_budget_is_refuted_with_a_word():
    found = learn("task:sum_mod(7)", steps=3)
    assert isinstance(found.verdict, Refuted)
    assert not found.is_proved
    assert "differs from the target on the word" in found.explain()
    assert found.trail[-1]["event"] == "end of the budget"


def test_legal_words_only_where_the_task_says_so():
    found = learn("task:mod_arith(2)", steps=3000)
    assert found.is_proved
    assert found.scope in ("every word", "every legal word, at the positions that count")
    assert found.model.transduce("1+1*0")[::2] == [1, 0, 1]


def test_a_users_pairs_and_what_is_known_then():
    target = zoo.sum_mod(3)
    draw = torch.Generator().manual_seed(0)
    words = ["".join(map(str, torch.randint(3, (n % 9 + 1,), generator=draw).tolist())) for n in range(400)]
    pairs = [((), 0)] + [(word, target.transduce(word)[-1]) for word in words]
    found = learn(pairs, steps=3000)
    assert isinstance(found.verdict, Agreement)
    assert found.verdict.words == 40
    assert equivalent(found.machine, target) is None
    assert "proved" not in found.explain().lower()
    low, high = found.verdict.interval
    assert 0.9 < low < high == 1.0
    merged = learn(pairs, method="rpni")
    assert equivalent(merged.machine, target) is None


def test_then_prove_refuses_what_is_no_automaton():
    with pytest.raises(
        UnsupportedFormat, match="layers of kind block under the column rule 'clip' have states without end"
    ):
        then_prove(compile_machine(zoo.sum_mod(3)), "task:sum_mod(3)")


def test_then_prove_on_a_model_made_otherwise():
    model = compile_machine(zoo.sum_mod(3), normalisation="onehot")
    assert then_prove(model, "task:sum_mod(3)").is_proved
    wrong = LRNN(model.config)
    wrong.load_state_dict(model.state_dict())
    wrong.recurrences[0].set_map(1, 0, torch.tensor([1, 2, 1]))
    assert isinstance(then_prove(wrong, "task:sum_mod(3)").verdict, Refuted)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"method": "magic"}, "method 'magic' is not known: choose one of train, rpni, merge"),
        ({"held_out": 1.5}, "held_out = 1.5 must be a share from 0 to below 1"),
        ({"depth": 3}, "depth: no such setting of a recipe, which has heads"),
        ({"noise": 2}, "noise = 2 must be a share from 0 to below 1, or None for unknown"),
        ({"noise": 0.5}, r"noise = 0\.5, but with 2 outputs a guess is wrong with a share of 0\.5"),
        ({"recipe": Recipe(), "heads": 3}, r"give a recipe or changes \(heads\), not both"),
        ({"method": "rpni"}, 'method "rpni" learns from given words: give a file of words, not a machine'),
    ],
)
def test_what_does_not_fit_is_refused(given, message):
    with pytest.raises(UnsupportedFormat, match=message):
        learn("task:parity", **given)


def test_noise_is_refused_where_the_method_knows_none():
    """It was told to say that labels may be wrong when it had just said so."""
    pairs = [("a", 0), ("a", 1), ("aa", 0)]
    with pytest.raises(UnsupportedFormat, match=r'takes every label for right, yet noise = 0\.5 .* method "merge" or'):
        learn(pairs, method="rpni", noise=0.5)
    with pytest.raises(UnsupportedFormat, match="contradict each other"):
        learn(pairs, method="rpni")


def test_words_of_which_labels_are_as_good_as_guesses_are_refused():
    with pytest.raises(
        UnsupportedFormat, match=r"noise = 0\.7, but with 3 outputs a guess is wrong with a share of 0\.667"
    ):
        learn([("a", 0), ("b", 1), ("ab", 2)], method="merge", noise=0.7)


def test_files_that_are_neither_words_nor_automata_are_told_what_both_are_in(tmp_path):
    (tmp_path / "words.tsv").write_text("ab\t1\n")
    with pytest.raises(UnsupportedFormat, match=r"words with outputs are in \.jsonl and \.csv, automata in \.dot"):
        learn(tmp_path / "words.tsv")


def test_words_with_wrong_labels_are_merged_by_a_test():
    target = zoo.sum_mod(3)
    draw = torch.Generator().manual_seed(0)
    words = ["".join(map(str, torch.randint(3, (n % 9 + 1,), generator=draw).tolist())) for n in range(400)]
    wrong = (torch.rand(400, generator=draw) < 0.1).tolist()
    pairs = [(w, (target.transduce(w)[-1] + is_wrong) % 3) for w, is_wrong in zip(words, wrong, strict=True)]
    held_out = learn([((), 0), *pairs], method="merge", noise=0.1).verdict
    assert isinstance(held_out, Agreement)
    assert (held_out.labels, held_out.noise) == (40, 0.1)
    assert held_out.interval[0] < held_out.expected < held_out.interval[1]
    found = learn([((), 0), *pairs], method="merge", noise=0.1, held_out=0)
    assert equivalent(found.machine, target) is None
    assert (found.faults, found.labels, found.verdict) == (sum(wrong), 401, None)
    with pytest.raises(UnsupportedFormat, match="contradict each other"):
        learn([((), 0), *pairs, *pairs[:1], (pairs[0][0], 2)], method="merge")
