from fsa2lrnn import MooreMachine, zoo
from fsa2lrnn.automata.language import equivalent
from fsa2lrnn.extra.learning.legal import free_output, is_restricted, legal_part
from fsa2lrnn.training.data import make_sampler


def test_only_what_is_legal_and_counts_is_left():
    target = zoo.mod_arith(2).minimise()
    sampler = make_sampler("task", target, "task:mod_arith(2)")
    assert is_restricted(sampler)
    part = legal_part(target, target, sampler, "free")
    assert part.transduce("1+1") == [1, "free", 0]
    assert part.transduce("11+1") == [1, "free", "free", "free"]


def test_a_wrong_digit_shows():
    target = zoo.mod_arith(2).minimise()
    sampler = make_sampler("task", target, "task:mod_arith(2)")
    flipped = [1 - q if q in (0, 1) else q for q in target.outputs]
    wrong = MooreMachine(target.delta, flipped, target.start, target.alphabet)
    word = equivalent(legal_part(target, target, sampler, None), legal_part(wrong, target, sampler, None))
    assert word is not None
    assert len(word) == 1


def test_where_all_counts_nothing_changes():
    target = zoo.sum_mod(3)
    sampler = make_sampler("task", target, "task:sum_mod(3)")
    assert not is_restricted(sampler)
    assert legal_part(target, target, sampler, None) == target.minimise()


def test_the_mark_is_no_output():
    assert free_output((0, 1)) is None
    assert free_output((None, 1)) == ("free", None)
