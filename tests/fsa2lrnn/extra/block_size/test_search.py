"""Submodules that are found: small, closed, and none superfluous among those chosen."""

import random

from flint import fmpq_mat

from fsa2lrnn.automata import zoo
from fsa2lrnn.extra.block_size import analysed
from fsa2lrnn.extra.block_size.chain import chain
from fsa2lrnn.extra.block_size.search import BlockSearch
from fsa2lrnn.families import linear
from fsa2lrnn.families.modules import restricted

from .conftest import random_machine


def search_of(machine, field):
    module, kinds = analysed(machine, lambda: None)
    found = chain(module, kinds, field, lambda: None)
    return module, found, BlockSearch(module, machine, kinds, field, found, lambda: None)


def codes(blocks, n):
    return [tuple(str(row[q]) for block in blocks for row in block.functions) for q in range(n)]


def test_no_chosen_block_is_superfluous_and_all_tell_the_states_apart():
    rng = random.Random(0)
    for _ in range(15):
        machine = random_machine(rng, 7)
        n = machine.n_states
        if n < 3:
            continue
        _, found, search = search_of(machine, "R")
        blocks = search.blocks(n - 1)
        assert len(set(codes(blocks, n))) == n
        for i in range(len(blocks)):
            assert len(blocks) == 1 or len(set(codes(blocks[:i] + blocks[i + 1 :], n))) < n
        assert search.blocks(found.bound - 1) is None


def test_the_smallest_for_a_pair_is_a_submodule_that_tells_it_apart():
    for machine in (zoo.tomita(3), zoo.even_pair(3), zoo.group("S3")):
        module, _, search = search_of(machine, "Q")
        for pair in ((0, 1), (1, 2), (0, 3)):
            z = fmpq_mat(1, module.dimension, [(q == pair[0]) - (q == pair[1]) for q in range(1, machine.n_states)])
            for candidate in search._for_pair(pair):
                assert restricted(module, candidate.rows) is not None
                assert linear.rank(candidate.rows * z.transpose()) == 1
                assert candidate.numbers[pair[0]] != candidate.numbers[pair[1]]


def test_a_field_is_used_where_it_makes_blocks_smaller():
    sizes = {}
    for field in "CRQ":
        _, _, search = search_of(zoo.sum_mod(5), field)
        sizes[field] = next(b for b in range(1, 5) if search.blocks(b) is not None)
    assert sizes == {"C": 1, "R": 2, "Q": 4}
