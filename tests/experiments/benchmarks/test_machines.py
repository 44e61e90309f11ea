"""The pieces of the benchmark that can be wrong."""

from experiments.benchmarks import machines as bench_machines
from fsa2lrnn.automata import zoo


def test_the_stream_is_one_expression_of_the_length_asked_for():
    text = b"".join(bench_machines.letters(1_000_003)).decode()
    assert len(text) == 1_000_003
    assert zoo.mod_arith(5).transduce(text[:2000])[-2] != "error"


def test_the_value_of_the_stream_is_known():
    text = b"".join(bench_machines.letters(801)).decode()
    assert eval(text) % 5 == bench_machines.value_of_letters(801) == zoo.mod_arith(5).transduce(text)[-1]


def test_a_machine_is_the_same_each_time():
    assert bench_machines.random_machine(50, 3) == bench_machines.random_machine(50, 3)
