"""`learn` from examples to a proved model."""

import numpy as np
import pytest
import torch

from fsa2lrnn import LRNN, MooreMachine, compile_machine, equivalent, learn, load, represent, zoo
from fsa2lrnn.errors import BudgetExceeded, NotExpressible, OutOfTime, UnsupportedFormat
from fsa2lrnn.learning import Agreement, Recipe, from_pairs, patching, then_prove
from fsa2lrnn.learning.choosing import estimate_noise
from fsa2lrnn.learning.examples import FreshWords
from fsa2lrnn.learning.judging import free_output, is_restricted, legal_part
from fsa2lrnn.learning.literals import Factors, Subsequences, ends
from fsa2lrnn.learning.patching import patch_table
from fsa2lrnn.training.data import make_sampler
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


def test_the_same_seed_learns_the_same_and_a_budget_ends_in_a_refutation():
    first, second = (learn("task:sum_mod(3)", steps=200) for _ in range(2))
    assert first.trail == second.trail
    assert all(torch.equal(a, b) for a, b in zip(first.network.parameters(), second.network.parameters(), strict=True))
    found = learn("task:sum_mod(7)", steps=3)
    assert isinstance(found.verdict, Refuted)
    assert not found.is_proved
    assert "differs from the target on the word" in found.explain()
    assert found.trail[-1]["event"] == "end of the budget"


def test_options_that_do_not_fit_the_task_or_the_method_are_refused(tmp_path):
    found = learn("task:mod_arith(2)", steps=3000)
    assert found.is_proved
    assert found.scope in ("every word", "every legal word, at the positions that count")
    assert found.model.transduce("1+1*0")[::2] == [1, 0, 1]
    pairs = [("a", 0), ("a", 1), ("aa", 0)]
    with pytest.raises(UnsupportedFormat, match="contradict each other"):
        learn(pairs, noise=0)
    with pytest.raises(
        UnsupportedFormat, match=r"noise = 0\.7, but with 3 outputs a guess is wrong with a share of 0\.667"
    ):
        learn([("a", 0), ("b", 1), ("ab", 2)], noise=0.7)
    (tmp_path / "words.tsv").write_text("ab\t1\n")
    with pytest.raises(UnsupportedFormat, match=r"words with outputs are in \.jsonl \.csv \.dat .*, automata in \.dot"):
        learn(tmp_path / "words.tsv")


def test_a_users_pairs_and_what_is_known_then():
    target = zoo.sum_mod(3)
    draw = torch.Generator().manual_seed(0)
    words = ["".join(map(str, torch.randint(3, (n % 9 + 1,), generator=draw).tolist())) for n in range(400)]
    pairs = [((), 0)] + [(word, target.transduce(word)[-1]) for word in words]
    found = learn(pairs, method="train", steps=3000)
    assert isinstance(found.verdict, Agreement)
    assert found.verdict.words == 40
    assert equivalent(found.machine, target) is None
    assert "proved" not in found.explain().lower()
    low, high = found.verdict.interval
    assert 0.9 < low < high == 1.0
    chosen = learn(pairs)
    assert equivalent(chosen.machine, target) is None
    assert (chosen.noise.wrong, chosen.noise.labels, chosen.noise.is_noise) == (0, 401, True)


def test_then_prove_judges_models_made_otherwise():
    with pytest.raises(
        UnsupportedFormat, match="layers of kind block under the column rule 'clip' have states without end"
    ):
        then_prove(compile_machine(zoo.sum_mod(3)), "task:sum_mod(3)")
    model = compile_machine(zoo.sum_mod(3), normalisation="onehot")
    assert then_prove(model, "task:sum_mod(3)").is_proved
    wrong = LRNN(model.config)
    wrong.load_state_dict(model.state_dict())
    wrong.recurrences[0].set_map(1, 0, torch.tensor([1, 2, 1]))
    assert isinstance(then_prove(wrong, "task:sum_mod(3)").verdict, Refuted)
    found = learn("task:parity", layer="hard_channels")
    again = then_prove(found.model, "task:parity")
    assert again.is_proved
    assert again.scope == "every word, the empty one excepted"
    with torch.no_grad():
        found.model.layers[0].transition.table.neg_()
    wrong = then_prove(found.model, "task:parity")
    assert isinstance(wrong.verdict, Refuted)
    assert wrong.machine != zoo.parity()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"method": "magic"}, "method 'magic' is not known: choose one of choice, train"),
        ({"held_out": 1.5}, "held_out = 1.5 must be a share from 0 to below 1"),
        ({"depth": 3}, "depth: no such setting of a recipe; it has heads"),
        ({"noise": 2}, "noise = 2 must be a share from 0 to below 1, or None for unknown"),
        ({"noise": 0.5}, r"noise = 0\.5, but with 2 outputs a guess is wrong with a share of 0\.5"),
        ({"recipe": Recipe(), "heads": 3}, r"give a recipe or changes \(heads\), not both"),
        ({"method": "choice"}, 'method "choice" learns from given words: give a file of words, not a machine'),
    ],
)
def test_what_does_not_fit_is_refused(given, message):
    with pytest.raises(UnsupportedFormat, match=message):
        learn("task:parity", **given)


def test_words_with_wrong_labels_and_a_stated_noise():
    target = zoo.sum_mod(3)
    draw = torch.Generator().manual_seed(0)
    words = ["".join(map(str, torch.randint(3, (n % 9 + 1,), generator=draw).tolist())) for n in range(400)]
    wrong = (torch.rand(400, generator=draw) < 0.1).tolist()
    pairs = [(w, (target.transduce(w)[-1] + is_wrong) % 3) for w, is_wrong in zip(words, wrong, strict=True)]
    held_out = learn([((), 0), *pairs], noise=0.1).verdict
    assert isinstance(held_out, Agreement)
    assert (held_out.labels, held_out.noise) == (40, 0.1)
    assert held_out.interval[0] < held_out.expected < held_out.interval[1]
    found = learn([((), 0), *pairs], noise=0.1, held_out=0)
    assert equivalent(found.machine, target) is None
    assert (found.faults, found.labels, found.verdict) == (sum(wrong), 401, None)
    with pytest.raises(UnsupportedFormat, match="contradict each other"):
        learn([((), 0), *pairs, *pairs[:1], (pairs[0][0], 2)], noise=0)


@pytest.mark.long_cases("hard_reflections-task:sum_mod(2)")
@pytest.mark.parametrize(
    ("layer", "source"),
    [
        ("hard_channels", "task:parity"),
        ("hard_channels", "task:flip_flop"),
        ("hard_reflections", "task:sum_mod(2)"),
        pytest.param("hard_reflections", "task:group(S3, transpositions)", marks=pytest.mark.slow),
    ],
)
def test_the_trained_network_itself_is_proved(layer, source, tmp_path):
    found = learn(source, layer=layer, folder=tmp_path)
    assert found.is_proved
    assert found.scope == "every word"
    assert found.model is found.network
    kept = load(tmp_path / "model.safetensors")
    assert kept.config.layers == found.model.config.layers
    assert isinstance(prove_equivalent(kept, found.machine), Proved)


@pytest.mark.parametrize(
    ("layer", "source", "why"),
    [
        ("hard_channels", "task:sum_mod(3)", r"a group that is not a 2-group, .* \(T37\): leave layer out"),
        ("hard_slice", "task:flip_flop", "a letter that joins states"),
    ],
)
def test_what_theory_excludes_is_refused_before_training(layer, source, why, tmp_path):
    with pytest.raises(NotExpressible, match=f"no network of {layer} is this machine, which has {why}"):
        learn(source, layer=layer, folder=tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.long
def test_where_some_words_do_not_count_theory_of_the_whole_machine_refuses_nothing():
    assert learn("regex:(ab)*", layer="hard_slice", sampler="live").is_proved


@pytest.mark.long
def test_a_layer_that_cannot_be_the_machine_is_refuted():
    found = learn("task:ab_star", layer="hard_channels", steps=40)
    assert isinstance(found.verdict, Refuted)
    found = learn("task:tomita(5)", layer="hard_channels", first_length=1, length=2, threshold=0.5)
    refuted = [record["word"] for record in found.trail if record.get("event") == "refuted"]
    assert refuted
    assert found.is_proved


def test_channels_and_data_by_their_family():
    machine = MooreMachine([[1, 2, 1], [0, 1, 0]], [True, False, False])
    assert represent(machine, "diagonal[-1,1]").answer == "no"
    found = learn(machine, layer="hard_channels")
    assert found.is_proved
    assert found.verdict.pairs > machine.n_states  # several states of the network for one of the machine
    with pytest.raises(UnsupportedFormat, match="layer = 'hard_channels' is proved as a whole, against a machine"):
        learn([("ab", True), ("ba", False)], method="train", layer="hard_channels")
    with pytest.raises(UnsupportedFormat, match="layer = 'lstm' must be one of block, hard_channels, hard_reflections"):
        learn("task:parity", layer="lstm")


@pytest.mark.usefixtures("out_of_time")
def test_a_time_limit_ends_theory_training_and_judgement():
    with pytest.raises(BudgetExceeded, match="every head reaches too many states to list them in time"):
        learn("task:group(S3, transpositions)", layer="hard_reflections", seconds=0.1)


def test_a_limit_of_the_caller_ends_a_run():
    def stop(_):
        raise OutOfTime("the caller's limit")

    with pytest.raises(OutOfTime, match="the caller's limit"):
        learn("task:sum_mod(7)", steps=60, report=stop)


def test_heads_that_nothing_depends_on_stand_still_in_a_wide_network():
    learned = learn("task:parity", layer="hard_channels", heads=24)
    assert learned.is_proved
    (event,) = [record for record in learned.trail if record.get("event") == "fewer heads"][-1:]
    A, v = learned.network.recurrences[0].tables(learned.network.first_inputs())
    alike = (A[:1] == A).flatten(2).all(-1) & (v == v[:1]).flatten(2).all(-1)
    is_unread = (learned.network.readout.weights.W1.unflatten(-1, (24, -1)) == 0).all(-1).all(0)
    assert (alike.all(0) & is_unread).sum() == event["still"] >= 20


def words_of(machine, length=14):
    examples = FreshWords(machine)
    batch = examples.many(length, torch.Generator().manual_seed(0))
    return examples, batch.tokens.numpy(), batch.labels.numpy()


def as_machine(f, start, examples, tokens, labels):
    _, counts = patching._follow(f, start, tokens, labels, len(examples.outputs))
    outputs = [examples.outputs[j] for j in counts.argmax(1)]
    return MooreMachine(f, outputs, start, examples.alphabet)


@pytest.mark.parametrize("name", ["group(S3)", "even_pair(3)", "shift_register(3)"])
@pytest.mark.parametrize("seed", [0, 1])
def test_a_machine_with_wrong_columns_is_the_machine_again(name, seed):
    examples, tokens, labels = words_of(MooreMachine.from_source(f"task:{name}"))
    target, rng = examples.machine, np.random.default_rng(seed)
    n = target.n_states
    f = rng.integers(0, n, (len(target.alphabet), 2 * n))
    f[:, :n] = target.delta
    for _ in range(3):
        f[rng.integers(len(f)), rng.integers(n)] = rng.integers(2 * n)
    found = patch_table(f, target.start, tokens, labels, len(examples.outputs))
    assert found.after == 0
    assert equivalent(as_machine(found.next_state, target.start, examples, tokens, labels), target) is None


def test_copies_are_merged_and_impossible_labels_are_left_over():
    examples, tokens, labels = words_of(zoo.sum_mod(3))
    delta = examples.machine.delta
    f = np.concatenate([delta + 3 * (np.arange(3) % 2), delta], axis=1)  # two copies that lead into each other
    found = patch_table(f, 0, tokens, labels, 3)
    assert (found.before, found.after, found.changes) == (0, 0, 0)
    assert (found.merged, as_machine(found.next_state, 0, examples, tokens, labels).minimise().n_states) == (3, 3)
    examples, tokens, labels = words_of(zoo.sum_mod(5))
    found = patch_table(np.zeros((5, 3), np.int64), 0, tokens, labels, len(examples.outputs))
    assert 0 < found.after <= found.before


def test_a_complete_repair_ends_early_only_if_it_cannot_succeed():
    _, tokens, _ = words_of(zoo.sum_mod(5))
    f, noise = np.zeros((5, 12), np.int64), np.random.default_rng(0).integers(5, size=(len(tokens), 15))
    alone, complete = (patch_table(f, 0, tokens, noise, 5, 0.0, completely=each) for each in (False, True))
    assert alone.after
    assert 16 <= complete.changes < alone.changes
    assert patching._is_vain([*range(1_000, 966, -2)])
    assert not patching._is_vain([*range(400, 366, -2)])


@pytest.mark.parametrize("labelled", [0.1, 1.0])
def test_recounting_changed_tables_equals_counting_anew(labelled):
    rng = np.random.default_rng(0)
    tokens, labels = rng.integers(4, size=(300, 12)), rng.integers(3, size=(300, 13))
    labels[rng.random(labels.shape) > labelled] = -1
    f = rng.integers(6, size=(4, 8))
    f[:, rng.integers(6)] = 2  # words meet again in a state that forgets
    words = patching._Words(0, tokens, labels, 3)
    changed = [np.where(rng.random(f.shape) < share, rng.integers(8, size=f.shape), f) for share in (0, 0.03, 0.1, 0.5)]
    for table, counts in zip(changed, words.recounts(words.run(f), changed), strict=True):
        np.testing.assert_array_equal(counts, words.run(table).counts)
    assert words.recounts(words.run(f), []).shape == (0, 8, 3)


def test_wrong_digits_show_and_only_legal_words_count():
    target = zoo.mod_arith(2).minimise()
    sampler = make_sampler("task", target, "task:mod_arith(2)")
    assert is_restricted(sampler)
    part = legal_part(target, target, sampler, "free")
    assert (part.transduce("1+1"), part.transduce("11+1")) == ([1, "free", 0], [1, "free", "free", "free"])
    target = zoo.sum_mod(3)
    sampler = make_sampler("task", target, "task:sum_mod(3)")
    assert not is_restricted(sampler)
    assert legal_part(target, target, sampler, None) == target.minimise()
    assert free_output((0, 1)) is None
    assert free_output((None, 1)) == ("free", None)
    target = zoo.mod_arith(2).minimise()
    sampler = make_sampler("task", target, "task:mod_arith(2)")
    flipped = [1 - q if q in (0, 1) else q for q in target.outputs]
    wrong = MooreMachine(target.delta, flipped, target.start, target.alphabet)
    word = equivalent(legal_part(target, target, sampler, None), legal_part(wrong, target, sampler, None))
    assert word is not None
    assert len(word) == 1


P = ([1 / 3] * 3, [0.05, 0.9, 0.05])  # of the letters a, b, c


def logged(machine, n, noise, seed=0):
    """Words of 1 to 12 letters with the output at their ends, a share of them wrong."""
    rng, outputs = np.random.default_rng(seed), sorted(set(machine.outputs))
    words = [
        [machine.alphabet[a] for a in rng.integers(len(machine.alphabet), size=m)] for m in rng.integers(1, 13, size=n)
    ]
    labels = [outputs.index(machine.transduce(word)[-1]) for word in words]
    wrong = [(y + int(rng.integers(1, len(outputs)))) % len(outputs) if rng.random() < noise else y for y in labels]
    return [(tuple(word), outputs[y]) for word, y in zip(words, wrong, strict=True)]


@pytest.mark.parametrize(
    ("machine", "noise"), [(zoo.sum_mod(4), 0.05), (zoo.random_dfa(6, 3, seed=1, minimal=True), 0.1)]
)
def test_without_a_method_the_machine_is_found_among_wrong_labels_and_their_share_is_estimated(machine, noise):
    stages = []
    found = learn(logged(machine, 3000, noise), report=stages.append)
    assert equivalent(found.machine, machine) is None
    low, high = found.noise.interval
    assert low < noise < high
    assert found.verdict.noise == found.noise.share
    assert "at the ends; " in stages[0]["stage"]
    assert stages[0]["stage"].endswith("letters: search, at most 120 s of processor time")


def test_errors_that_depend_on_the_state_are_no_noise():
    machine = zoo.sum_mod(4)
    data = from_pairs(logged(machine, 3000, 0.05))
    merged = MooreMachine(machine.delta, [0, 1, 2, 2], machine.start, machine.alphabet)
    right, wrong = estimate_noise(machine, data), estimate_noise(merged, data)
    assert right.is_noise
    assert not wrong.is_noise
    assert "the machine is not right" in str(wrong)


@pytest.mark.parametrize(
    "regex",
    [
        "(a|b|c)*cab(a|b|c)*",  # a factor
        "(b|c)*a(a|c)*b(a|b)*c(a|b|c)*",  # a subsequence
        "((b|c)*a(b|c)*a)*(b|c)*",  # a counter
        "b*(a|c)(a|b|c)*",  # a factor on a tier
    ],
)
def test_hypotheses_are_compared_for_long_words_with_one_label_of_two(regex):
    target, rng, stages = MooreMachine.from_source(f"regex:{regex}"), np.random.default_rng(0), []
    words = ["".join(rng.choice(["a", "b", "c"], size=m, p=p)) for m in (8, 9, 10) for p in P for _ in range(100)]
    found = learn([(word, target.transduce(word)[-1]) for word in words], report=stages.append)
    assert ": hypotheses and search, at most" in stages[0]["stage"]
    assert equivalent(found.machine, target) is None


def test_a_long_word_is_found_by_its_literals():
    words = np.array([[0, 1, 2, 0, 1], [2, 1, 0, 1, 1], [0, 0, 0, 0, 0]])
    lengths, rows = np.array([5, 5, 3]), np.arange(3)
    for family in (Factors(words, lengths, 3, (0, 1), 3), Subsequences(words, lengths, 3, 3)):
        counts = family.counts(rows, np.array([0, 1, 1]))
        for number in range(counts.shape[1]):
            holds = family.holds(number, rows)
            assert counts[:, number].tolist() == [holds[:1].sum(), holds[1:].sum()]
            acceptor = family.acceptor(number)
            assert holds.tolist() == np.array(acceptor.outputs)[ends(acceptor, words, lengths)].tolist()
