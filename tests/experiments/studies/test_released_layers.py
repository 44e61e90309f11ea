"""Released layers: observed, searched, trained."""

import pytest
import torch

from experiments import results_io
from experiments.studies import released_search as search
from experiments.studies.released_layers import MIXERS
from experiments.studies.released_search import LAYERS
from fsa2lrnn.automata import zoo
from fsa2lrnn.lrnn import LRNN, LRNNConfig, layer_named
from fsa2lrnn.optional import is_installed

pytest.importorskip("transformers")


OF_TRANSFORMERS = [name for name in MIXERS if name != "pd-ssm"]
has_pdssm = pytest.mark.skipif(not (is_installed("pdssm") and is_installed("einops")), reason="pdssm.py is not here")


def model(name, **shape):
    kind = MIXERS[name]
    layer_named(f"{kind.__module__}:{kind.__name__}")
    torch.manual_seed(0)
    config = kind.Config(**{"heads": 2, "block": 4, **shape})
    return LRNN(LRNNConfig(("a", "b"), (0, 1), (config,), embedding_dim=8, normalisation="none"))


@pytest.mark.parametrize("name", OF_TRANSFORMERS)
def test_pieces_and_steps_are_the_whole(name):
    made, tokens = model(name).eval(), torch.randint(2, (3, 75))
    with torch.no_grad():
        whole = made(tokens)
        state, parts = made.initial_state(3), []
        for piece in tokens.split([1, 1, 66, 1, 6], dim=1):
            logits, state = made.advance(piece, state)
            parts.append(logits)
    torch.testing.assert_close(torch.cat(parts, dim=1), whole, atol=1e-5, rtol=1e-5)
    assert not torch.equal(whole[0, -1], whole[1, -1])


@pytest.mark.parametrize("name", OF_TRANSFORMERS)
def test_a_gradient_reaches_all_of_a_mixer(name):
    made = model(name)
    made(torch.randint(2, (4, 9))).square().sum().backward()
    lacking = [key for key, weight in made.layers[0].named_parameters() if weight.grad is None or not weight.grad.any()]
    assert lacking == []


@has_pdssm
def test_pd_ssm_reads_words_whole():
    made, tokens = model("pd-ssm").eval(), torch.randint(2, (3, 9))
    assert made.not_causal is not None
    assert made(tokens).shape == (3, 9, 2)
    made.train()(tokens).square().sum().backward()
    assert made.layers[0].block.A_dict.grad.any()


ROWS = {(row["machine"], row["layer"]): row for row in results_io.read("released_search")["results"]}


def test_refusals_were_searched_and_targets_are_the_machines():
    assert list(ROWS) == search.cells()
    assert all(row["states"] <= 3 and row["steps"] == search.STEPS for row in ROWS.values())
    assert not any(row["found"] for row in ROWS.values() if row["refused"])
    assert {layer for (_, layer), row in ROWS.items() if row["found"]} == set(LAYERS)
    machine = zoo.sum_mod(3).minimise()
    words = search.all_words(3)
    assert len({tuple(word) for word in words.tolist()}) == 3**search.SHORT
    wanted = search.answers(machine, words[::500], {0: 0, 1: 1, 2: 2})
    assert wanted.tolist() == [machine.transduce([machine.alphabet[a] for a in word]) for word in words[::500].tolist()]


@pytest.mark.parametrize("layer", LAYERS)
def test_a_layer_reads_from_the_left_and_is_trained_whole(layer):
    torch.manual_seed(0)
    model, tokens = search.Small(layer, 3, 2), torch.tensor([[0, 1, 2, 1, 0, 2]])
    logits = model(tokens)
    assert torch.allclose(model(tokens[:, :4]), logits[:, :4], atol=1e-5)
    logits.sum().backward()
    assert all(part.grad is not None for part in model.parameters())


def test_the_recurrence_of_rwkv_7_by_matrices():
    r, w, k, a, v = torch.randn(5, 2, 6, 3, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    found, a = search.recurrence(r, w, k, torch.sigmoid(a), v), torch.sigmoid(a)
    S = torch.zeros(4, 4, dtype=torch.float64)
    for t in range(6):
        kappa = k[1, t, 2] / k[1, t, 2].norm()
        transition = torch.diag(torch.exp(-0.606531 * torch.sigmoid(w[1, t, 2]))) - torch.outer(
            kappa, kappa * a[1, t, 2]
        )
        S = S @ transition + torch.outer(v[1, t, 2], k[1, t, 2] * a[1, t, 2])
        assert torch.allclose(found[1, t, 2], S @ r[1, t, 2])


@pytest.mark.slow
@pytest.mark.parametrize(("source", "found"), [("flip_flop", True), ("parity", False)])
def test_a_row_is_found_again(source, found):
    row, kept = search.search(source, "qwen3-next"), ROWS[source, "qwen3-next"]
    assert (row["found"], row["refused"]) == (found, not found)
    assert row.keys() == kept.keys()
    # How far a search comes that finds nothing depends on the order in which the CPU adds.
    free = set() if found else {"short", "long"}
    assert all(row[name] < 1 if name in free else row[name] == kept[name] for name in row)
