"""The explorer: its page, its scene and its programs."""

import json
import re

import numpy as np
import pytest
import torch

from experiments.studies.keep_models import MODELS
from fsa2lrnn import MooreMachine, compile_machine, load, zoo
from fsa2lrnn.draw.explorer import SceneModel, build, compiled, plane, scene, searched
from fsa2lrnn.draw.model_program import NUMBERS, programs, size
from fsa2lrnn.errors import InvalidMachine, UnsupportedFormat
from fsa2lrnn.nn import LRNN, BlockLayerConfig, HouseholderLayerConfig, LRNNConfig
from fsa2lrnn.nn.layers.diagonal import LRUConfig
from fsa2lrnn.verification.specification import specification_of


def test_words_that_fail_and_models_that_close():
    machine = zoo.parity()
    model = compile_machine(MooreMachine([[0, 1], [1, 1]], machine.outputs, 0, machine.alphabet))
    shown = searched(model, machine, 1.0)
    (word,) = shown.failing
    assert model.transduce(word)[-1] != machine.transduce(word)[-1]
    assert (shown.said, shown.kind) == ("Fails on a word of 2 letters, the shortest.", "learned")
    closed = searched(compile_machine(machine), machine, 1.0).said
    assert closed.startswith("Correct on all words that are read letter by letter: all reachable")
    said = compiled(compile_machine(machine), machine).said
    assert said.startswith(
        "Proved correct on all words: 2 joint states enumerated, bit for bit, in float32, by the scans "
    )
    assert said.endswith("every shape of call, batch and number of threads.")
    other = MooreMachine([[0, 1], [1, 1]], machine.outputs, 0, machine.alphabet)
    assert compiled(compile_machine(machine), other).said == "Compiled from the automaton."


NASTY = '</script><b a="1">&'


@pytest.fixture
def opened(browser, tmp_path):
    """Open a page that needs nothing and says nothing."""
    said, asked, pages = [], [], []

    def open_(machine, models, width=1300, scheme="light"):
        path = tmp_path / "explorer.html"
        path.write_text(build(f"page {NASTY}", machine, models, "lacked"), encoding="utf-8")
        page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme, has_touch=width < 600)
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(path.as_uri())
        pages.append(page)
        return page

    yield open_
    for page in pages:
        page.close()
    assert said == []
    assert all(url.startswith("file:") for url in asked)
    assert len(asked) == len(pages)


def taken(page):
    """The numbers of the states in the last transition, as the drawing marks it."""
    return page.evaluate("[...document.querySelectorAll('.arrow.taken')].map(a => a.dataset.edge)")


def here(page):
    return page.evaluate("document.querySelector('#automaton .place.here').dataset.state")


@pytest.mark.long
def test_a_walk_by_the_keyboard(opened):
    """From the word's field to its end and back, every step shown."""
    machine = zoo.sum_mod(5)
    page = opened(machine, {"compiled": SceneModel(compile_machine(machine), "compiled")})
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "word"
    page.keyboard.type("3 1 4 2")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "tape"
    drawn = machine.minimise()
    states = [drawn.start, *map(int, drawn.states("3142"))]
    outputs = drawn.transduce("3142")
    page.keyboard.press("Home")
    assert (here(page), taken(page)) == (str(states[0]), [])
    for k in range(4):
        page.keyboard.press("ArrowRight")
        assert (here(page), taken(page)) == (str(states[k + 1]), [f"{states[k]}-{states[k + 1]}"])
        assert page.inner_text(".verdict") == f"Right: outputs {outputs[k]}."
        assert page.inner_text("#said").startswith(f"After {k + 1} of 4 letters the automaton is in state")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowLeft")
    assert here(page) == str(states[3])
    page.keyboard.press("Home")
    page.select_option("#speed", "0")
    page.locator("#tape").focus()
    page.keyboard.press(" ")
    page.wait_for_function(f"document.querySelector('#automaton .place.here').dataset.state === '{states[4]}'")
    page.wait_for_function("document.querySelector('#play').textContent.includes('play')")


@pytest.mark.long
def test_a_learned_model_fails_where_its_failing_word_says(opened):
    machine, model = zoo.sum_mod(5), load(MODELS / "sum5" / "seed-0.safetensors")
    word = ("4", *"2" * 247)  # the shortest known
    shown = SceneModel(model, "learned", "", [word])
    page = opened(machine, {"learned": shown, "compiled": SceneModel(compile_machine(machine), "compiled")})
    page.click("[data-word='0']")
    assert page.input_value("#word") == "".join(word)
    page.click("#error")
    assert page.inner_text("#said").startswith(f"After {len(word)} of {len(word)} letters")
    given, wanted = model.transduce(word)[-1], machine.transduce(word)[-1]
    assert page.inner_text("[data-model='0'] .verdict") == f"Wrong: outputs {given}, expected {wanted}."
    assert page.inner_text("[data-model='1'] .verdict") == f"Right: outputs {wanted}."
    cells = page.evaluate("[...document.querySelectorAll('td.wrong')].map(c => [c.dataset.k, c.textContent])")
    assert cells == [[str(len(word)), str(given)]]
    assert page.evaluate("document.querySelectorAll('[data-model=\"0\"] .margin .wrong').length") == 1


@pytest.mark.long_cases("light")
@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.slow)])
def test_a_phone_shows_all_of_a_cascade(opened, scheme):
    machine = zoo.mod_arith(5)
    page = opened(machine, {"cascade": SceneModel(compile_machine(machine, form="cascade"))}, 390, scheme)
    page.fill("#word", "1+2*3")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    sizes = page.evaluate(
        "[...document.querySelectorAll('svg, canvas, button')].map(s => s.getBoundingClientRect())"
        ".map(r => [r.width, r.height])"
    )
    assert min(min(size) for size in sizes) >= 38
    assert page.evaluate("document.querySelectorAll('canvas').length") == 2
    assert page.inner_text(".verdict") == "Right: outputs 2."
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", background))) > 600) == (scheme == "light")


def test_symbols_of_every_kind_and_more_states_than_are_drawn(opened):
    letters = [NASTY, "up down", "x"]
    delta = [[(q + a) % 70 for q in range(70)] for a in (1, 2, 3)]
    machine = MooreMachine(delta, [NASTY if q == 1 else q for q in range(70)], 0, letters)
    page = opened(machine, {NASTY: SceneModel(compile_machine(machine), "compiled")})
    assert "b" not in page.evaluate("[...document.querySelectorAll('b')].map(b => b.tagName)")
    page.click("[data-letter='0']")
    assert page.inner_text(".verdict") == f"Right: outputs {NASTY}."
    assert "up down → " in page.inner_text("#moves")
    assert page.input_value("#word") == f'["{NASTY}"]'.replace('a="1"', 'a=\\"1\\"')
    page.fill("#word", '["x", "up down"]')
    assert page.inner_text("#said").startswith("After 2 of 2 letters")
    page.fill("#word", '["x", "y"]')
    assert page.inner_text("#fault").startswith("“y”, letter 2, is not in the alphabet: ")
    for letters, typed in (("ab", "characters"), (("up", "down"), "words"), (("a b", "c"), "list"), ((0, "0"), "list")):
        assert scene(MooreMachine([[0], [0]], [0], 0, letters), {}).data["typed"] == typed


def test_nothing_is_drawn_twice_or_beyond_the_limit():
    machine = MooreMachine([[1, 1], [0, 0]], ("\x1b", "x"), alphabet=("\x1b", "\ud800"))
    page = build("page", machine, {"a": SceneModel(compile_machine(machine))})
    assert page.encode()
    assert "\x1b" not in page
    assert page.count(">\\x1b</button>") == page.count(">\\ud800</button>") == 1
    machine = zoo.parity()
    with pytest.raises(UnsupportedFormat, match="5 models: a page shows 4 side by side"):
        build("page", machine, {str(i): SceneModel(compile_machine(machine)) for i in range(5)})
    machine = zoo.sum_mod(3)
    assert scene(machine, {"m": SceneModel(compile_machine(machine))}).heads == [{}]


def test_letters_are_matched_by_name_and_outputs_by_request():
    parity = MooreMachine([[0, 1], [1, 0]], [False, True], 0, ["x", "y"])
    turned = MooreMachine([[1, 0], [0, 1]], [False, True], 0, ["y", "x"])
    found = scene(parity, {"m": SceneModel(compile_machine(turned), failing=[("y", "x")])}).data
    letters = found["machine"]["alphabet"]
    assert [("y", "x").index(letter) for letter in letters] == found["models"][0]["letters"]
    assert found["words"] == [{"of": "m", "letters": [letters.index("y"), letters.index("x")]}]
    wanted = [found["models"][0]["outputs"][j] for j in found["models"][0]["wanted"]]
    assert wanted == found["machine"]["outputs"]
    json.dumps(found, allow_nan=False)
    with pytest.raises(InvalidMachine, match="the alphabets differ"):
        scene(zoo.ab_star(), {"m": SceneModel(compile_machine(parity))})
    model = compile_machine(MooreMachine([[0]], [0], 0, ["a"]))
    machine = MooreMachine([[1, 0]], [0, "new"], 0, ["a"])
    found = scene(machine, {"m": SceneModel(model)}, "lacked").data["models"][0]
    assert sorted(zip(found["wanted"], found["counts"], strict=True)) == [(-1, False), (0, True)]


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


@pytest.mark.long
def test_models_of_all_kinds_bit_for_bit(run):
    machine, model = zoo.sum_mod(5), load(MODELS / "sum5" / "seed-0.safetensors")
    compare(machine, {"learned": model}, run)
    machine = zoo.mod_arith(5)
    models = {form: compile_machine(machine, form=form) for form in ("cascade", "onehot")}
    models["table"] = compile_machine(machine, layout="index")
    compare(machine, models, run, exact=True)
    products = network((HouseholderLayerConfig(4, 2, 6, 6, n_heads=2, unit_keys=True),), normalisation="none")
    compare(zoo.sum_mod(3), {"products": products}, run)


@pytest.mark.long
def test_stacks_under_every_rule_and_connection(run):
    compare(
        zoo.sum_mod(3),
        {
            "paper": stack("paper", "residual", True, False),
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


def centres(points):
    return {q: np.mean([p[:2] for p in points if p[2] == q], axis=0) for q in {p[2] for p in points}}


@pytest.mark.parametrize("source", ["sum_mod(5)", "tomita(5)", "sum_mod(2)"])
def test_the_plane_parts_the_states(source):
    machine = zoo.from_task(source)
    model = compile_machine(machine, dtype=torch.float64)
    goal = specification_of(model, machine)
    points = plane(model, goal, None)["points"]
    found = centres(points)
    assert all(np.linalg.norm(found[q] - found[p]) > 0.1 for q in found for p in found if p != q)
    assert max(abs(x) for point in points for x in point[:2]) == pytest.approx(1, abs=1e-2)
    if source == "sum_mod(5)":  # turned to be like another picture
        angles = 4 * np.pi * np.arange(5) / 5
        like = [[float(np.cos(t)), float(np.sin(t)), q] for q, t in enumerate(angles)]
        turned = centres(plane(model, goal, like)["points"])
        np.testing.assert_allclose([turned[q] for q in range(5)], [point[:2] for point in like], atol=1e-2)


def hard(second=3):
    """Two one-hot heads over the letters of parity, the first of which is parity itself."""
    torch.manual_seed(3)
    layer = BlockLayerConfig((2, second), 2, 2, gate="table")
    model = LRNN(LRNNConfig(("0", "1"), (False, True), (layer,), embedding_dim=2, normalisation="onehot"))
    for letter, rows in enumerate(([0, 1], [1, 0])):
        model.recurrences[0].set_map(letter, 0, torch.tensor(rows))
    return model


def test_heads_that_are_automata_are_drawn():
    found = scene(zoo.parity(), {"m": SceneModel(hard())})
    assert (sorted(found.heads[0]), found.data["models"][0]["heads"]["0"]) == ([0, 1], [0, 1])
    assert found.heads[0][0].count('class="node"') == 2
    learned = LRNN(LRNNConfig(("0", "1"), (False, True), (BlockLayerConfig((2,), 2, 2),), embedding_dim=2))
    others = {"learned": learned, "compiled": compile_machine(zoo.parity(), layout="index")}
    assert scene(zoo.parity(), {name: SceneModel(model) for name, model in others.items()}).heads == [{}, {}]
    cascade = SceneModel(compile_machine(zoo.mod_arith(5), form="cascade"))
    assert scene(zoo.mod_arith(5), {"cascade": cascade}).heads == [{}]
