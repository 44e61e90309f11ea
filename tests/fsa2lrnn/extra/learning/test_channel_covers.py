"""Words that no number of hard channels tells apart (T51)."""

from itertools import product

import numpy as np

from fsa2lrnn import MooreMachine, represent, zoo
from fsa2lrnn.automata import minimise
from fsa2lrnn.extra.learning.channel_covers import IndistinguishableWords, alike_to_channels

MAPS = ((1, 0), (-1, 0), (0, -1), (0, 0), (0, 1))


def after(channels, word):
    """The states of channels, each a start and a map a letter, after a word."""
    states = []
    for x, *maps in channels:
        for a in word:
            x = maps[a][0] * x + maps[a][1]
        states.append(x)
    return tuple(states)


EVERY_CHANNEL = [(x, *maps) for x in (-1, 0, 1) for maps in product(MAPS, repeat=2)]


def random_machines(n, count):
    draw = np.random.default_rng(0)
    for _ in range(count):
        yield minimise(MooreMachine(draw.integers(n, size=(2, n)), draw.integers(2, size=n).tolist()))


def test_alike_words_are_alike_to_every_channel_and_the_machine_tells_them_apart():
    found = [(machine, alike_to_channels(machine)) for machine in random_machines(4, 60)]
    refuted = [(machine, alike) for machine, alike in found if isinstance(alike, IndistinguishableWords)]
    assert len(refuted) > 20
    for machine, alike in refuted:
        u, v = ([machine.alphabet.index(letter) for letter in word] for word in alike.words)
        assert after(EVERY_CHANNEL, u) == after(EVERY_CHANNEL, v)
        assert (machine.outputs[machine.run(alike.words[0])], machine.outputs[machine.run(alike.words[1])]) == (
            alike.outputs
        )
        assert len(set(alike.outputs)) == 2


def test_where_there_are_none_channels_do_it():
    """Outputs are then a function of the joint states of all channels: on all words of up to eight letters."""
    able = [machine for machine in random_machines(3, 200) if alike_to_channels(machine) is False]
    assert sum(machine.n_states == 3 for machine in able) > 3
    for machine in able[:20]:
        outputs = {}
        for length in range(9):
            for word in product(range(2), repeat=length):
                output = machine.outputs[machine.run([machine.alphabet[a] for a in word])]
                assert outputs.setdefault(after(EVERY_CHANNEL, word), output) == output


def test_channels_do_what_one_vector_a_state_does_and_more():
    last = MooreMachine([[1, 2, 1], [0, 1, 0]], [True, False, False])
    assert minimise(last).n_states == 3
    for machine, answer in ((zoo.parity(), "yes"), (zoo.flip_flop(), "yes"), (zoo.sum_mod(2), "yes"), (last, "no")):
        assert represent(machine, "diagonal[-1,1]").answer == answer
        assert alike_to_channels(machine) is False
    able = [m for m in random_machines(4, 120) if represent(m, "diagonal[-1,1]", short_words=False).answer == "yes"]
    assert sum(machine.n_states > 2 for machine in able) > 1
    assert all(alike_to_channels(machine) is False for machine in able)
    assert alike_to_channels(zoo.sum_mod(2), budget=3) is None
    said = alike_to_channels(zoo.ab_star()).explain()
    assert 'in one state after "ab" and after "aaab", where the machine puts out True and False' in said
