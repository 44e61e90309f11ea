"""Canaries: what they detect, proved and injected into a real model's caches; the driver, and its explanations."""

import json
import subprocess
from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path
from xml.etree import ElementTree

import pytest
import torch

from experiments import results_io
from experiments.studies import canary_releases
from fsa2lrnn.canary.driver import PATTERNS, drive
from fsa2lrnn.canary.faults import PARTS, SINGLE, Moment, compare, detection, faults, named, tokens_of
from fsa2lrnn.canary.machines import MIXED, LayerState, exchange, held, long_cycle, recency, words
from fsa2lrnn.canary.report import CanaryReport, canary_of, check_elsewhere, check_model, chosen, read_record, report
from fsa2lrnn.canary.write_model import plan_of, record
from fsa2lrnn.errors import CheckpointError, UnsupportedFormat
from fsa2lrnn.export import target
from fsa2lrnn.export.packages import cache_name
from fsa2lrnn.optional import is_installed

needs_transformers = pytest.mark.skipif(not is_installed("transformers"), reason="transformers is not installed")
N, FURTHER = 30, 24  # letters before an injected fault and after it


@pytest.mark.parametrize("canary", [recency(), exchange()], ids=lambda canary: canary.kind)
def test_outputs_name_all_that_is_held(canary):
    assert len({held(state) for state in canary.reachable[1:]}) == len(canary.outputs)
    word = words(canary, 1, 40)[0]
    states = list(canary.run(canary.start, word))
    letters = [canary.letters[a] for a in word]
    assert canary.machine.transduce(letters) == [canary.label(state) for state in states]


@pytest.mark.parametrize("canary", [recency(), exchange()], ids=lambda canary: canary.kind)
def test_words_hold_different_values_where_sequences_are_mixed(canary):
    kept = set()
    for word in [(), *words(canary, 8, 64)]:
        *_, state = canary.start, *canary.run(canary.start, word[:MIXED])
        pairs = zip(held(state[1:]), [head.lag for heads in canary.layers[1:] for head in heads], strict=True)
        kept.add(tuple(value for value, lag in pairs if not lag))
    assert len(kept) == 9


@pytest.mark.parametrize("canary", [recency(), exchange(3)], ids=lambda canary: canary.kind)
def test_a_canary_that_generates_runs_a_long_cycle(canary):
    generating = replace(canary, follows=long_cycle(canary))
    follows, state, seen = dict(generating.follows), canary.step(canary.start, 0), {}
    while state not in seen:
        seen[state] = len(seen)
        state = canary.step(state, follows[held(state)])
    assert len(seen) - seen[state] >= 40
    assert generating.machine.outputs[1] in canary.letters


def test_detection_counts_the_words_whose_outputs_stay_right():
    """Against all histories of five letters and continuations of two, one by one."""
    canary = exchange(3)
    n = len(canary.letters)
    for name in (*SINGLE, "the next 2 letters had been read before"):
        harmless = unseen = met = 0
        for word in product(range(n), repeat=5):
            past = [canary.start, *canary.run(canary.start, word)]
            for further in product(range(n), repeat=2):
                altered = named(Moment(canary, past, [*word, *further]), name)
                harmless += altered == past[-1]
                met += altered != past[-1]
                pairs = zip(canary.run(past[-1], further), canary.run(altered, further), strict=True)
                unseen += altered != past[-1] and all(held(one) == held(other) for one, other in pairs)
        found = detection(canary, name, tokens=2, last=2, length=5)
        assert found.harmless == Fraction(harmless, n**7)
        assert found.unseen == Fraction(unseen, max(met, 1))


def test_exchanges_show_a_lost_state_at_the_next_token():
    assert detection(exchange(3), "the state were zero", length=6).within == 1


@pytest.fixture(scope="module")
def tracking():
    """The canary of registers in Qwen3-Next, not proved here: `make` does that."""
    canary = recency()
    model = target("qwen3-next").build(plan_of(canary), torch.float32)
    return canary, model


def injected(canary):
    """Yield (the name of a fault, the altered state of each layer as (time and word of values, of windows))."""
    n_layers = len(canary.layers)

    def mixed(values, windows, layers=range(n_layers)):
        return [(values, windows) if i in layers else (N, N) for i in range(n_layers)]

    sources = {"the state were zero": 0, "the state were that of other sequence 0": ("other", N)}
    sources |= {f"the last {k} letters had not been read": N - k for k in (1, 2, 3, 5, 8)}
    sources |= {f"the next {k} letters had been read before": N + k for k in (1, 2, 4)}
    for name, source in sources.items():
        for part, (of_values, of_windows) in PARTS.items():
            altered = (source if of_values else N, source if of_windows else N)
            yield f"{name} ({part})" if part else name, mixed(*altered)
    for name in (
        "the state were zero",
        "the state were that of other sequence 0",
        "the last 3 letters had not been read",
    ):
        for layer in range(n_layers):
            yield f"{name} (layer {layer} only)", mixed(sources[name], sources[name], [layer])
    yield "layer 0 had read the state of layer 1", [("layer", 1), *[(N, N)] * (n_layers - 1)]


@needs_transformers
@torch.no_grad()
def test_faults_injected_into_a_models_cache_are_seen_and_explained(tracking):
    canary, model = tracking
    word, other = (list(one[: N + FURTHER]) for one in words(canary, 2, 64))
    kept, name_of = {"word": [], "other": []}, cache_name(model)
    for name, letters in (("word", word), ("other", other)):
        cache = None
        for letter in letters[: N + 8]:
            cache = getattr(model(input_ids=torch.tensor([[letter]]), use_cache=True, **{name_of: cache}), name_of)
            linear = [layer for layer in cache.layers if hasattr(layer, "recurrent_states")]
            kept[name].append([(one.recurrent_states[0].clone(), one.conv_states[0].clone()) for one in linear])
    zero = [tuple(torch.zeros_like(part) for part in parts) for parts in kept["word"][0]]

    def part(source, layer, which):
        name, t = source if isinstance(source, tuple) else ("word", source)
        return zero[layer][which] if t == 0 else kept[name][t - 1][layer][which]

    cases = list(injected(canary))
    assert len(cases) >= 40
    rows = []
    for _, layers in cases:
        row = []
        for i, (values, windows) in enumerate(layers):
            if values == "layer":
                row.append(kept["word"][N - 1][windows])
            else:
                row.append((part(values, i, 0), part(windows, i, 1)))
        rows.append(row)
    cache = getattr(model(input_ids=torch.tensor([word[:N]] * len(cases)), use_cache=True), name_of)
    linear = [layer for layer in cache.layers if hasattr(layer, "recurrent_states")]
    for i, layer in enumerate(linear):
        layer.recurrent_states[0].copy_(torch.cat([row[i][0] for row in rows]))
        layer.conv_states[0].copy_(torch.cat([row[i][1] for row in rows]))
    outputs = [[] for _ in cases]
    for letter in word[N:]:
        answer = model(input_ids=torch.tensor([[letter]] * len(cases)), use_cache=True, **{name_of: cache})
        for out, token in zip(outputs, answer.logits[:, -1].argmax(-1).tolist(), strict=True):
            out.append(token)
    past = {
        name: [canary.start, *canary.run(canary.start, letters)] for name, letters in (("word", word), ("other", other))
    }
    moment = Moment(canary, past["word"][: N + 1], word, others=[other[:N]])
    right = list(canary.run(past["word"][N], word[N:]))
    n_explained = n_shown = 0
    for (name, layers), out in zip(cases, outputs, strict=True):

        def held_by(source, i):
            where, t = source if isinstance(source, tuple) else ("word", source)
            return past[where][t][i]

        altered = tuple(
            past["word"][N][windows]
            if values == "layer"
            else LayerState(held_by(values, i).values, held_by(windows, i).window)
            for i, (values, windows) in enumerate(layers)
        )
        run = {"name": name, "word": word, "first": N, "outputs": out, "events": [N], "others": [other[:N]]}
        seen, then = compare(canary, run), list(canary.run(altered, word[N:]))
        assert (seen is None) == (list(map(held, then)) == list(map(held, right))), name
        if seen is not None:
            n_shown += 1
            why = seen.explanation.partition(f"as if, after letter {N}, ")[2]
            n_explained += list(map(held, canary.run(named(moment, why), word[N:]))) == list(map(held, then))
    assert n_shown >= 0.9 * len(cases)
    assert n_explained >= 0.8 * n_shown, f"{n_explained} of {n_shown}"


def outputs_with(canary, fault, *, every=0, **given):
    """Return a run whose state is changed by a fault after letter N, and after each `every`-th letter after it."""
    word = words(canary, 1, N + FURTHER)[0]
    past = [canary.start, *canary.run(canary.start, word[:N])]
    outputs, token = [], tokens_of(canary)
    for t in range(N, len(word)):
        if t == N or (every and (t - N) % every == 0):
            past[-1] = named(Moment(canary, past, word, **given), fault)
        past.append(canary.step(past[-1], word[t]))
        outputs.append(token(past[-1]))
    return {"name": "", "word": word, "first": N, "outputs": outputs, "events": list(range(N, len(word))), **given}


@pytest.mark.parametrize(
    ("fault", "every", "when"),
    [
        ("the last 1 letters had not been read (recurrent states only)", 0, "after letter 30"),
        ("the last 1 letters had not been read (recurrent states only)", 1, "at every border from letter 30 on"),
        ("the last 1 letters had not been read (recurrent states only)", 2, "at every second border from letter 30 on"),
        ("the last letter of other sequence 0 had been read as well", 1, "at every border from letter 30 on"),
        ("the state were that of other sequence 0 (recurrent states only)", 0, "after letter 30"),
    ],
)
def test_a_fault_that_goes_on_is_explained(fault, every, when):
    canary = recency()
    seen = compare(canary, outputs_with(canary, fault, every=every, others=[words(canary, 3, N + FURTHER)[2]]))
    assert seen is not None
    assert (seen.fault, seen.explanation) == (fault, f"as if, {when}, {fault}")


def test_the_fault_that_explains_most_runs_is_reported():
    canary = recency()
    names = ("the state were zero", *(f"the last {n} letters had not been read" for n in (3, 5)))
    zero, stale, staler = (outputs_with(canary, name) for name in names)
    done = {"pattern": "batch", "status": "ran", "message": "", "seconds": 0.1}
    found = report(canary, [done | {"runs": [zero, stale, staler]}], {})
    assert found.explanations["batch"] == "as if, after letter 30, the last 3 letters had not been read"
    assert found.rows()[0][2].endswith(found.explanations["batch"])


@pytest.fixture
def recorded(tmp_path):
    (tmp_path / "canary.json").write_text(json.dumps(record(recency(), "qwen3-next", "float32", False)))
    return tmp_path


def test_a_site_without_transformers_is_refused(recorded):
    with pytest.raises(CheckpointError, match="holds no transformers: `pip install --no-deps --target"):
        check_elsewhere(recorded, recorded)


def test_a_process_that_ends_early_is_no_exact_run(recorded, monkeypatch):
    (recorded / "transformers").mkdir()
    lines = '{"versions": {}}\n{"pattern": "whole", "status": "ran", "message": "", "runs": [], "seconds": 0.1}\n'
    ended = subprocess.CompletedProcess([], -9, lines, "Killed")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: ended)
    assert check_elsewhere(recorded, recorded, "whole").exact == ("whole",)
    with pytest.raises(CheckpointError, match=r"pattern batch ends the process .*exit code -9: Killed"):
        check_elsewhere(recorded, recorded, "whole,batch")


@needs_transformers
def test_a_folder_without_weights_is_refused_without_noise(recorded, capfd):
    with pytest.raises(CheckpointError, match="does not load with transformers"):
        check_model(recorded)
    assert capfd.readouterr() == ("", "")


def test_what_is_no_folder_of_a_canary_names_the_remedy(tmp_path):
    with pytest.raises(CheckpointError, match=r"holds no canary\.json: make a canary by `fsa2lrnn canary make"):
        check_model(tmp_path)
    (tmp_path / "canary.json").write_text("{")
    with pytest.raises(CheckpointError, match="make it again"):
        check_model(tmp_path)


def test_the_junit_report_is_xml_whatever_the_stack_says():
    done = [{"pattern": "whole", "status": "refused", "message": "a\x1b[1m\x00", "runs": [], "seconds": 0.1}]
    assert ElementTree.fromstring(report(recency(), done, {}).to_junit())[0][0].get("message") == "a [1m "


@needs_transformers
def test_the_driver_finds_the_faults_of_a_patched_stack(tracking, monkeypatch, tmp_path):
    from fsa2lrnn.canary import driver

    canary, model = tracking
    value = json.loads(json.dumps(record(canary, "qwen3-next", "float32", False)))
    assert canary_of(value) == canary

    def run(*names):
        done = driver.drive(model, value["words"], False, value["padding"], list(names))
        return report(canary, done, {}, tmp_path)

    healthy = run("whole", "prefill-then-decode", "left-padding", "beams-reordered", "packed-by-positions")
    assert (healthy.exact, healthy.wrong) == (
        ("whole", "prefill-then-decode", "left-padding", "beams-reordered"), ("packed-by-positions",),
    )  # fmt: skip
    assert "that of other sequence 0" in healthy.explanations["packed-by-positions"]
    kind = type(getattr(model(input_ids=torch.tensor([[0]]), use_cache=True), cache_name(model)).layers[0])
    monkeypatch.setattr(kind, "reorder_cache", lambda *_: None)
    broken = run("beams-reordered")
    assert broken.wrong == ("beams-reordered",)
    assert "the state were that of other sequence" in broken.explanations["beams-reordered"]
    assert not broken
    assert 'failures="1"' in broken.to_junit()
    model.save_pretrained(tmp_path)
    for script in (healthy.scripts["packed-by-positions"], broken.scripts["beams-reordered"]):
        assert script.count("\n") <= 15
        with pytest.raises(AssertionError):
            exec(script, {})
    monkeypatch.undo()
    exec(broken.scripts["beams-reordered"], {})


@pytest.mark.long
@needs_transformers
def test_a_compiled_model_is_exact(tracking):
    canary, model = tracking
    done = drive(model, record(canary, "qwen3-next", "float32", False)["words"], False, 0, ["compiled"])
    assert report(canary, done, {}).exact == ("compiled",)


def test_patterns_are_chosen_by_name():
    assert "generate" not in chosen("all", PATTERNS, generates=False)
    assert chosen("whole, generate,whole", PATTERNS, generates=False) == ["whole", "generate"]
    with pytest.raises(UnsupportedFormat, match="'holes' is not known: choose among whole"):
        chosen("holes", PATTERNS)


def test_a_stack_that_refuses_is_not_wrong():
    done = [{"pattern": "whole", "status": "refused", "message": "ValueError: no", "runs": [], "seconds": 0.1}]
    found = report(recency(), done, {})
    assert (found.refused, bool(found), found.rows()) == (("whole",), True, [("whole", "refused", "ValueError: no")])
    assert isinstance(found, CanaryReport)


def test_every_fault_is_named_once():
    canary = recency()
    word = words(canary, 1, 20)[0]
    names = [name for name, _ in faults(Moment(canary, [canary.start, *canary.run(canary.start, word)], word))]
    assert len(names) == len(set(names)) > 60


@pytest.mark.parametrize("change", [
    {"letters": []}, {"letters": ["a", "b", "c", "dd"]}, {"words": [[4]]}, {"padding": None}, {"follows": [[[1], 9]]},
    {"layers": [[{"table": [[0, 1]], "lag": 0}]]}, {"layers": [[{"table": [[0, 2]] * 4, "lag": 0}]]},
    {"layers": [[{"table": [[0, 1]] * 4, "lag": 4}]]}, {"layers": 3}, {"version": 2}, {"words": None},
])  # fmt: skip
def test_records_that_do_not_fit_together_are_refused(tmp_path, change):
    value = json.loads(json.dumps(record(recency(), "qwen3-next", "float32", False)))
    (tmp_path / "canary.json").write_text(json.dumps(value))
    assert read_record(tmp_path)["kind"] == "recency"
    (tmp_path / "canary.json").write_text(json.dumps(value | change))
    with pytest.raises(CheckpointError):
        read_record(tmp_path)


def test_the_guide_shows_the_stored_results():
    guide = Path(canary_releases.__file__).parents[2] / "docs" / "guides" / "test-your-inference-stack.md"
    assert canary_releases.table(results_io.read("canary_releases")["results"]) in guide.read_text(encoding="utf-8")
