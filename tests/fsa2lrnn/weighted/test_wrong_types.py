"""Values of wrong types at the public doors of weighted automata: each ends with an error of the library in words."""

import time

import pytest

from fsa2lrnn import WeightedAutomaton, zoo
from fsa2lrnn.errors import Fsa2LrnnError
from fsa2lrnn.weighted import compare, minimal
from fsa2lrnn.weighted.approximate import approximate, error_bound
from fsa2lrnn.weighted.baum_welch import baum_welch
from fsa2lrnn.weighted.distribution import learn_distribution
from fsa2lrnn.weighted.networks import compile_machine, from_model, linear_readout, prove_equivalent, rounding_bound
from fsa2lrnn.weighted.pautomac import read_model, read_solution, read_words
from fsa2lrnn.weighted.spectral import estimate

W = WeightedAutomaton
w = W("ab", [1], [[["1/2"]], [["1/4"]]], [1])
two = W("ab", [1], [[["1/2"]], [["1/4"]]], [[1], [2]], "xy")
DOORS = {
    "alphabet": lambda x: W(x, [1], [[[1]]] * 3, [1]),
    "initial": lambda x: W("a", x, [[[1]]], [1]),
    "transitions": lambda x: W("a", [1], x, [1]),
    "a matrix": lambda x: W("a", [1], [x], [1]),
    "a row": lambda x: W("a", [1], [[x]], [1]),
    "a weight": lambda x: W("a", [1], [[[x]]], [1]),
    "final": lambda x: W("a", [1], [[[1]]], x),
    "final of an output": lambda x: W("a", [1], [[[1]]], [[1], x]),
    "a letter": lambda x: W([[x]], [1], [[[1]]], [1]),
    "call": lambda x: w(x),
    "+": lambda x: w + x,
    "+ from the right": lambda x: x + w,
    "-": lambda x: w - x,
    "- from the right": lambda x: x - w,
    "*": lambda x: w * x,
    "* from the right": lambda x: x * w,
    "output": lambda x: two.output(x),
    "equivalent": lambda x: w.equivalent(x),
    "from_machine": lambda x: W.from_machine(x),
    "from_machine, output": lambda x: W.from_machine(zoo.parity(), x),
    "from_probabilities, initial": lambda x: W.from_probabilities("a", x, [[["1/2"]]], ["1/2"]),
    "from_probabilities, transitions": lambda x: W.from_probabilities("a", [1], x, ["1/2"]),
    "from_probabilities, a row": lambda x: W.from_probabilities("a", [1], [[x]], ["1/2"]),
    "from_probabilities, final": lambda x: W.from_probabilities("a", [1], [[["1/2"]]], x),
    "from_probabilities, final rows": lambda x: W.from_probabilities("a", [1], [[["1/2"]]], [[x]]),
    "from_hmm, initial": lambda x: W.from_hmm("a", x, [[1]], [[1]]),
    "from_hmm, moves": lambda x: W.from_hmm("a", [1], x, [[1]]),
    "from_hmm, emissions": lambda x: W.from_hmm("a", [1], [[1]], x),
    "from_model": lambda x: from_model(x),
    "from_json": lambda x: W.from_json(x),
    "compare, first": lambda x: compare(x, w),
    "compare, second": lambda x: compare(w, x),
    "minimal": lambda x: minimal(x),
    "compile_machine": lambda x: compile_machine(x),
    "compile_machine, dtype": lambda x: compile_machine(w, x),
    "prove_equivalent, first": lambda x: prove_equivalent(x, w),
    "prove_equivalent, second": lambda x: prove_equivalent(w, x),
    "linear_readout": lambda x: linear_readout(x),
    "rounding_bound": lambda x: rounding_bound(x),
    "rounding_bound, length": lambda x: rounding_bound(w, length=[x]),
    "approximate": lambda x: approximate(x, 1),
    "approximate, n_states": lambda x: approximate(w, x),
    "error_bound": lambda x: error_bound(x),
    "read_model": lambda x: read_model(x),
    "read_words": lambda x: read_words(x),
    "read_solution": lambda x: read_solution(x),
    "estimate": lambda x: estimate(x, "ab"),
    "estimate, a word": lambda x: estimate([x], "ab"),
    "estimate, a letter": lambda x: estimate([(x,)], "ab"),
    "estimate, alphabet": lambda x: estimate([(99,)], x),
    "estimate, basis": lambda x: estimate([()], "ab", basis=x or "x"),
    "estimate, rank": lambda x: estimate([()], "ab", rank=x or "x"),
    "learn_distribution": lambda x: learn_distribution(x, "ab"),
    "learn_distribution, alphabet": lambda x: learn_distribution([(99,)], x),
    "baum_welch": lambda x: baum_welch(x, "ab", 1),
    "baum_welch, states": lambda x: baum_welch([()], "ab", x or "x"),
    "seconds": lambda x: compare(w, w, [x]),
}


@pytest.mark.parametrize("door", DOORS)
def test_wrong_types_are_named(door):
    begun = time.process_time()
    for value in (None, float("nan"), object(), {"z": 1}, "no_such_file"):
        with pytest.raises(Fsa2LrnnError, match=r".{20}"):
            DOORS[door](value)
    assert time.process_time() - begun < 5
