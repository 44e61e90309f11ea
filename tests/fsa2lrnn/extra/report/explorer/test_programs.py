"""What the page computes is what torch computes: 1,000 letters in a browser, model by model."""

import re

import numpy as np
import pytest
import torch

from experiments.studies.keep_models import MODELS
from fsa2lrnn import compile_machine, load, zoo
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.extra.baselines import LRUConfig
from fsa2lrnn.extra.report.explorer import SceneModel, build
from fsa2lrnn.extra.report.explorer.programs import NUMBERS, program, programs, size
from fsa2lrnn.lrnn import LRNN, BlockLayerConfig, LRNNConfig
from fsa2lrnn.lrnn.layers import HouseholderLayerConfig

LETTERS = 1_000
RUN = """([i, tokens]) => {
  let { states, logits } = readers[i].start();
  const found = [[...logits]];
  for (const a of tokens) {
    const step = readers[i].step(states, a);
    states = step.states;
    found.push([...step.logits]);
  }
  return found;
}"""


def network(layers, **options):
    torch.manual_seed(7)
    return LRNN(LRNNConfig(("0", "1", "2"), (0, 1, 2), layers, embedding_dim=6, readout_hidden=5, **options))


def stack(rule, connection, norm, shift):
    block = BlockLayerConfig((2, 2, 2), 7, 5)
    return network((block,) * 2, normalisation=rule, connection=connection, layer_norm=norm, token_shift=shift)


@pytest.fixture
def run(browser, tmp_path):
    """The logits of models of one machine along a word, the empty one first, as a page computes them."""
    pages = []

    def run(machine, models, tokens):
        path = tmp_path / "page.html"
        shown = {name: SceneModel(model) for name, model in models.items()}
        path.write_text(build("page", machine, shown, "lacked"), encoding="utf-8")
        page = browser.new_page()
        pages.append(page)
        page.goto(path.as_uri())
        return [np.array(page.evaluate(RUN, [i, tokens.tolist()])) for i in range(len(models))]

    yield run
    for page in pages:
        page.close()


def by_torch(model, tokens, order):
    """Along the word in the model's letters, the empty one first."""
    with torch.no_grad():
        return model(torch.tensor([[order[a] for a in tokens]]), "sequential", empty_word=True)[0].double().numpy()


def compare(machine, models, run, exact=False):
    tokens = np.random.default_rng(1).integers(0, len(machine.alphabet), LETTERS)
    letters = machine.minimise().alphabet
    for model, found in zip(models.values(), run(machine, models, tokens), strict=True):
        wanted = by_torch(model, tokens, [model.alphabet.index(letter) for letter in letters])
        assert found.shape == wanted.shape
        if exact:
            assert (found == wanted).all()
            continue
        off = np.abs(found - wanted).max()
        assert off < (1e-3 if model.dtype == torch.float32 else 1e-10) * max(1, np.abs(wanted).max())
        ranked = np.sort(wanted, axis=1)
        clear = ranked[:, -1] - ranked[:, -2] > 4 * off
        assert clear.mean() > 0.95
        assert (found.argmax(1) == wanted.argmax(1))[clear].all()


def test_models_of_all_kinds_bit_for_bit(run):
    machine, model = zoo.sum_mod(5), load(MODELS / "sum5" / "seed-0.safetensors")
    compare(machine, {"learned": model}, run)
    machine = zoo.mod_arith(5)
    models = {form: compile_machine(machine, form=form) for form in ("cascade", "onehot")}
    models["table"] = compile_machine(machine, layout="index")
    compare(machine, models, run, exact=True)
    products = network((HouseholderLayerConfig(4, 2, 6, 6, n_heads=2, unit_keys=True),), normalisation="none")
    compare(zoo.sum_mod(3), {"products": products}, run)


def test_stacks_under_every_rule_and_connection(run):
    compare(
        zoo.sum_mod(3),
        {
            "released": stack("released", "residual", True, False),
            "clip": stack("clip", "concat", "readout", True),
            "none": stack("clip", "chain", False, True).double(),
            "onehot": stack("onehot", "full-residual", True, False),
        },
        run,
    )


def test_what_no_page_can_run_is_refused():
    with pytest.raises(UnsupportedFormat, match=r"model 'x': layers.0 is of kind lru, whose transitions are no tables"):
        programs({"x": network((LRUConfig(6, 4),), connection="full-residual")})
    with pytest.raises(UnsupportedFormat, match=r"model 'x' computes in bfloat16, and a page in float32 or float64"):
        programs({"x": compile_machine(zoo.parity(), dtype=torch.bfloat16)})
    large = LRNN(LRNNConfig((0, 1), (0,), (BlockLayerConfig((64,) * 8, 64, 64),) * 3, embedding_dim=512))
    assert size(large) > NUMBERS
    said = f"the models hold {size(large) + size(compile_machine(zoo.parity())):,} numbers (a "
    with pytest.raises(UnsupportedFormat, match=re.escape(said)) as error:
        programs({"a": large, "b": compile_machine(zoo.parity())})
    assert "at most 3,000,000: draw fewer models, or one with fewer heads" in str(error.value)


def test_sizes_are_those_of_what_is_written():
    def numbers(value):
        if isinstance(value, dict):
            return int(np.prod(value["shape"])) if "shape" in value else sum(map(numbers, value.values()))
        return sum(map(numbers, value)) if isinstance(value, list) else 0

    for model in (compile_machine(zoo.sum_mod(5)), compile_machine(zoo.mod_arith(5), form="cascade"),
                  stack("clip", "chain", False, False), compile_machine(zoo.parity(), layout="index")):  # fmt: skip
        assert abs(numbers(program(model)) - size(model)) <= 2 * len(model.norms) + 2
