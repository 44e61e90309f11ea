import numpy as np
import pytest

from experiments.benchmarks import words as bench_words


def test_the_counters_are_those_of_their_expressions():
    import re

    for n, pattern in bench_words.COUNTING.items():
        machine = bench_words.counter(n)
        for seed in range(50):
            word = "".join(np.random.default_rng(seed).choice(list("ab"), size=seed))
            assert machine.accepts(word) == (re.fullmatch(pattern, word) is not None)


@pytest.mark.slow
def test_rates_and_ratios_are_of_the_same_actions(monkeypatch):
    monkeypatch.setattr(bench_words, "LETTERS", 10_000)
    monkeypatch.setattr(bench_words, "SLOW_LETTERS", 1_000)
    monkeypatch.setattr(bench_words, "BATCH", 10)
    found = bench_words.measure(bench_words.counter(5), None)
    rates = found["million_letters_a_second"]
    assert min(rates.values()) > 0
    for name, over in found["over"].items():
        assert over["automata-lib"] == rates[name] / rates["automata-lib"]
