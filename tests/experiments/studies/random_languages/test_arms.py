import pytest

from experiments.studies.random_languages.arms import ARMS, settings
from fsa2lrnn import zoo


@pytest.mark.parametrize("arm", [arm for arm in ARMS if ARMS[arm].changes is not None])
def test_every_arm_is_settings_that_fit(arm):
    found = settings(arm, "task:parity", 3)
    assert (found.seed, found.steps, found.test_length, found.stop_at) == (3, 1_000, 40, None)
    assert found.network((0, 1), (0, 1)).layers


@pytest.mark.parametrize(
    ("arm", "machine", "answer"),
    [
        ("onehot", zoo.group("S4"), "yes"),
        ("none", zoo.group("S4"), "yes"),
        ("none", zoo.random_dfa(16, 4, seed=0, minimal=True), "no"),
        ("released", zoo.random_dfa(16, 4, seed=0, minimal=True), "no"),
        ("released", zoo.parity(), "not excluded"),
        ("clip", zoo.group("S3"), "yes"),
        ("diagonal", zoo.parity(), "yes"),
        ("diagonal", zoo.group("S3"), "no"),
        ("lru", zoo.parity(), "no"),
        ("s4d", zoo.length_mod(3), "not excluded"),
        ("rwkv4", zoo.parity(), "no"),
        ("householder_1", zoo.sum_mod(3), "no"),
    ],
)
def test_what_theory_says(arm, machine, answer):
    assert ARMS[arm].theory(machine)[0] == answer
