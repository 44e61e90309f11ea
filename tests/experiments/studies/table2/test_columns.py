"""The columns are networks that can be trained, and their sweeps ask for what the paper's protocol asks."""

import pytest
import torch

from experiments.studies.table2.columns import COLUMNS, RATES, TASKS, rates_of, sweep
from fsa2lrnn.lrnn import LRNN
from fsa2lrnn.training.train import prepare_words


@pytest.mark.parametrize("name", COLUMNS)
def test_every_column_is_a_network_of_the_right_depth_and_protocol(name):
    for task, layers in zip(TASKS, (1, 1, 3), strict=True):
        trials = sweep(task, name, rates_of(name), (0, 1)).trials
        assert len(trials) == 2 * len(rates_of(name))
        settings = trials[0].settings
        assert (settings.steps, settings.batch, settings.evaluate_every, settings.test_words) == (
            40_000,
            128,
            1_000,
            128,
        )
        assert (settings.length, settings.test_length, settings.stop_at) == (40, 500, 1.0)
        words = prepare_words(settings)
        model = LRNN(settings.network(words.alphabet, words.outputs))
        assert len(model.layers) == layers
        batch = words.batch(2, words.fit(12), words.generator(0))
        assert model(batch.tokens).shape == (*batch.tokens.shape, len(words.outputs))


def test_the_paper_prints_four_columns_and_its_rates_are_the_presets():
    assert [name for name, column in COLUMNS.items() if column.paper] == ["ours", "s4", "s4d", "liquid_polyb"]
    assert all(column.seeds == 5 for column in COLUMNS.values() if column.paper)
    assert all(column.seeds >= 2 for column in COLUMNS.values())
    own, paper = (trial.settings.learning_rate for trial in sweep(TASKS[1], "s4d", RATES, (0,)).trials)
    assert (own, paper) == (1e-3, 2e-4)
    assert rates_of("ours") == rates_of("vanilla") == ("paper",)


def test_blocks_of_rwkv_know_their_place():
    settings = sweep(TASKS[2], "rwkv4", ("own",), (0,)).trials[0].settings
    assert [layer.place for layer in settings.network(("a",), (0, 1)).layers] == [0, 1, 2]
    assert torch.isfinite(torch.tensor(settings.learning_rate))
