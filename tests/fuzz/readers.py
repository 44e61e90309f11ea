"""The readers of files, each with valid files and with what makes hostile ones of them."""

from __future__ import annotations

import base64
import json
import random
import sys
import zlib
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save as to_bytes

from fsa2lrnn.automata import MooreMachine, zoo
from fsa2lrnn.automata.formats import dot, jflap, json_file, openfst
from fsa2lrnn.families import represent
from fsa2lrnn.families.identities import FORCED
from fsa2lrnn.judge.certificate import Certificate
from fsa2lrnn.judge.certify import certify
from fsa2lrnn.judge.check import check
from fsa2lrnn.judge.packing import pack
from fsa2lrnn.lower import compile_machine
from fsa2lrnn.lrnn import LRNN, BlockLayerConfig, HouseholderLayerConfig, LRNNConfig, load
from fsa2lrnn.lrnn import checkpoint as models
from fsa2lrnn.lrnn.tensor_file import _in_order, digest
from fsa2lrnn.reading import parse_json
from fsa2lrnn.symbols import encode
from fsa2lrnn.training import run_folder
from fsa2lrnn.training.grid import Sweep
from fsa2lrnn.training.grid import read as read_sweep
from fsa2lrnn.training.learning import saving
from fsa2lrnn.training.learning.examples import FreshWords
from fsa2lrnn.training.learning.judging import Target
from fsa2lrnn.training.learning.recipe import Recipe
from fsa2lrnn.training.learning.run import Run as Learning
from fsa2lrnn.training.learning.saving import Asked, RunFolder
from fsa2lrnn.training.learning.word_files import read_words
from fsa2lrnn.training.results import Kept, Result, read_result
from fsa2lrnn.training.settings import Settings
from fsa2lrnn.training.sweep import RESULTS, Ledger
from fsa2lrnn.training.train import Run, train
from tests.fuzz.base import Reader
from tests.fuzz.mutate import HOSTILE, encoded, in_bytes, in_json, in_text, json_text

recheck = sys.modules["fsa2lrnn.families.recheck"]  # in the package the name is the function's
Rejected = recheck.Rejected
DATA = Path(__file__).parent.parent / "fsa2lrnn" / "automata" / "formats" / "data"
MODELS = Path(__file__).parent.parent.parent / "experiments" / "models"


def of_text(valid: Callable[[], list[bytes]], pieces: tuple[str, ...]) -> Callable[[random.Random], bytes]:
    """Half the files changed in their bytes, half in their text."""

    def hostile(rng: random.Random) -> bytes:
        content = rng.choice(valid())
        if rng.random() < 0.5:
            return in_bytes(content, rng)
        return encoded(in_text(content.decode(errors="replace"), rng, pieces))

    return hostile


def of_json(valid: Callable[[], list[bytes]], own: Callable[[], list[Any]] = list) -> Callable[[random.Random], bytes]:
    """One file in five changed in its bytes, the others in their values, `own` among what these become."""

    def hostile(rng: random.Random) -> bytes:
        content = rng.choice(valid())
        if rng.random() < 0.2:
            return in_bytes(content, rng)
        return encoded(json_text(in_json(json.loads(content), rng, own()), rng))

    return hostile


# Machines

REGEX = (
    "a", "b", "é", "(", ")", "|", "*", "+", "?", "&", "^", ".", "{2}", "{1000}", "{,3}", "{2,}", "{99,100}", "{0}",
    "[a-z]", "[^a]", "[\x00-\U0010ffff]", "[a-", "\\d", "\\W", "\\", "()", "a{50}", "(a|b)*", "ε", "$", " ", "(a?){99}",
)  # fmt: skip
TASKS = (
    "sum_mod", "group", "random_dfa", "dyck", "contains", "shift_register", "all_maps", "mod_arith", "S3", "S9",
    "Z99999", "A5xS4", "(", ")", ",", "=", "5", "-1", "1e9", "99999", "10**9", "True", "None", "'a'", '"', "completion",
    "sink", "__class__", "lambda: 0", "[1]*9", "0.5",
)  # fmt: skip
DOT = (
    "digraph", "graph", "strict", "subgraph", "node", "edge", "{", "}", "[", "]", "->", "--", ";", ",", "=", ":", "+",
    '"', "<", ">", "<b>", "&lt;", "//", "/*", "*/", "#", "label=", 'label="a,b"', "shape=doublecircle", "a->b->c",
    "fsa2lrnn=1", "{a b c}->{d e f}", "__start0", "q0", "\\n", "é", "peripheries=2", 'letters="[1]"', "edge[label=x]",
)  # fmt: skip
JFLAP = (
    "<state id='9'>", "</state>", "<transition>", "</transition>", "<from>0</from>", "<to>1</to>", "<read>a</read>",
    "<read/>", "<initial/>", "<final/>", "<type>mealy</type>", "<type>pda</type>", "<!DOCTYPE x>", "<!ENTITY a 'b'>",
    "&amp;", "&#0;", "&x;", "<![CDATA[", "]]>", "<!--", "<structure>", "<a>", "<?xml version='1.1'?>", "x='",
    "<transout>",
)  # fmt: skip
OPENFST = (
    "0 1 a\n", "1\n", "0 1 a b 0.5\n", "\t", " ", "\n", "Infinity", "1e9", "<eps>", "0", "-1", "99999999999999999999",
    "0 0 é\n", "a b c d e f\n", "5 5\n", "0 1 0 0\n",
)  # fmt: skip


@cache
def regexes() -> list[bytes]:
    texts = ["(ab)*", "a|b&c^d", "(a|b)*a(a|b){3}", "[a-c]+x?\\d{2,3}", "abc", "(a?){9}", "[^a]b.", "a" * 500, "()|a"]
    return [text.encode() for text in texts]


@cache
def tasks() -> list[bytes]:
    return [name.encode() for name in zoo.ZOO]


@cache
def machines() -> list[MooreMachine]:
    odd = MooreMachine([[1, 0], [0, 0]], [("x", 1), None], alphabet=[0, ("long", True)], labels=["p", frozenset({1})])
    return [zoo.parity(), zoo.ab_star(), zoo.group("S3"), zoo.even_pair(2), odd]


def written(*endings: str) -> list[bytes]:
    return [path.read_bytes() for path in sorted(DATA.iterdir()) if path.name.endswith(endings)]


@cache
def dots() -> list[bytes]:
    return [*written(".dot"), *(dot.to_dot(machine).encode() for machine in machines())]


@cache
def jflaps() -> list[bytes]:
    return [*written(".jff"), *(jflap.to_jflap(machine).encode() for machine in machines()[:3])]


@cache
def openfsts() -> list[bytes]:
    return [*written(".fst.txt"), *(openfst.to_openfst(machine)[0].encode() for machine in machines()[:2])]


@cache
def json_machines() -> list[bytes]:
    return [json_file.to_json(machine).encode() for machine in machines()]


@cache
def tables() -> list[bytes]:
    return [b"<eps>\t0\na\t1\nb\t2\n", b"-\t0\nb 7\na 3\nc 12\n"]


def hostile_task(rng: random.Random) -> bytes:
    """A task that there is with any arguments, or one of the examples changed."""
    if rng.random() < 0.4:
        return of_text(tasks, TASKS)(rng)
    numbers = ["0", "1", "2", "-1", "7", "40", "500", "9999", "124999", "250001", "10" * 9, "1.5", "True", "", "'a'"]
    words = [rng.choice([*numbers, *numbers, *TASKS, "letters=ab", "generators=all", "S8", "Z500xZ500", "A5xA5xA5"])
             for _ in range(rng.randrange(5))]  # fmt: skip
    return f"{rng.choice(list(zoo.TASKS))}({', '.join(words)})".encode()


def read_machine(path: Path) -> object:
    return MooreMachine.from_source(path)


def read_source(prefix: str) -> Callable[[Path], object]:
    return lambda path: MooreMachine.from_source(prefix + path.read_bytes().decode(errors="replace"))


def read_table(path: Path) -> object:
    text = path.read_bytes().decode(errors="replace")
    return openfst.from_openfst("0 1 a\n1 0 b\n0\n", isymbols=text)


def read_word(path: Path) -> object:
    text = path.read_bytes().decode(errors="replace")
    return encode(text, ("10", "one", True) if "one" in text else ("0", "1", "+"))


def words() -> list[bytes]:
    return [b"0 1 +", b"10 one 10"]


# Models


@cache
def networks() -> list[LRNN]:
    torch.manual_seed(0)
    small = LRNNConfig(
        ("a", "b"), (0, 1), (BlockLayerConfig((2, 1), 3, 2),) * 2, 4, 3, "clip", 1.2, "chain", True, True
    )
    householder = LRNNConfig(("a",), (0, None), (HouseholderLayerConfig(2, 2, 3, 3, 2, True),), 4, 3)
    models = [compile_machine(zoo.parity(), layout=layout) for layout in ("dense", "index")]
    return [*models, LRNN(small), LRNN(householder), compile_machine(machines()[-1])]


def model_file(tensors: dict[str, torch.Tensor], metadata: dict[str, str]) -> bytes:
    return _in_order(to_bytes(tensors, {"sha256": digest(tensors)} | metadata))


@cache
def model_files() -> list[tuple[dict[str, torch.Tensor], dict[str, str]]]:
    form = {"format": models.FORM.name, "version": str(models.FORM.version)}
    return [
        (
            {name: x.contiguous() for name, x in model.state_dict().items()},
            form | {"config": json.dumps(model.config.to_json())},
        )
        for model in networks()
    ]


def with_other_header(content: bytes, rng: random.Random, own: list[Any]) -> bytes:
    """A safetensors file with values of its header changed."""
    size = int.from_bytes(content[:8], "little")
    header = encoded(json_text(in_json(json.loads(content[8 : 8 + size]), rng, own), rng))
    return len(header).to_bytes(8, "little") + header + content[8 + size :]


def other_tensors(tensors: dict[str, torch.Tensor], rng: random.Random) -> dict[str, torch.Tensor]:
    """A tensor more or less, or one of another shape, type or name."""
    tensors = dict(tensors)
    name = rng.choice(list(tensors))
    shape = rng.choice(((), (0,), (1,), (3, 3), (0, 1 << 40), (1, 1, 1, 1, 1), (1000,)))
    kinds = "float32 float64 float16 bfloat16 int64 uint8 bool complex64 float8_e4m3fn int8"
    dtype = getattr(torch, rng.choice(kinds.split()))
    match rng.randrange(5):
        case 0:
            tensors[name] = torch.full_like(tensors[name], rng.choice((-1, 1, 2, 10**5, 10**12)))
        case 1:
            del tensors[name]
        case 2:
            tensors[rng.choice(("x", "", "embedding.weight", "é" * 50, "layers.0.x0"))] = torch.zeros(shape).to(dtype)
        case 3:
            tensors[name] = tensors[name].to(dtype)
        case _:
            tensors[name] = torch.full(shape, float("nan")).to(dtype)
    return tensors


def hostile_tensors(
    files: Callable[[], list[tuple[dict[str, torch.Tensor], dict[str, str]]]], part: str
) -> Callable[[random.Random], bytes]:
    """Files changed in their bytes, their header, the JSON of one part of their metadata, or their tensors."""

    def hostile(rng: random.Random) -> bytes:
        tensors, metadata = rng.choice(files())
        match rng.randrange(5):
            case 0:
                return in_bytes(model_file(tensors, metadata), rng)
            case 1:
                return with_other_header(model_file(tensors, metadata), rng, list(range(8)))
            case 2:
                tensors = other_tensors(tensors, rng)
            case 3:
                key = rng.choice([*metadata, "sha256"])
                value = rng.choice((*map(str, HOSTILE[:30]), "9" * 5_000, "[" * 100_000))
                metadata = metadata | {key: value.encode(errors="replace").decode()}
            case _:
                other = json_text(in_json(json.loads(metadata[part]), rng), rng)
                metadata = metadata | {part: encoded(other).decode(errors="replace")}
        return model_file(tensors, metadata)

    return hostile


def run_model(path: Path) -> object:
    """Load a model, and run it on words that are read letter by letter, at once, and by compiled loops."""
    model = load(path)
    letters = list(model.alphabet[:3])
    return [model.transduce(letters * repetitions) for repetitions in (1, 50, 1_000)], model.initial_logits()


@cache
def whole_models() -> list[bytes]:
    return [model_file(*parts) for parts in model_files()]


@cache
def released_specs() -> list[bytes]:
    """State dictionaries as the released code saves them, as JSON of shapes and types."""
    d, shapes = (
        4,
        {"embedding.weight": [3, 4], "Wo1.weight": [5, 4], "Wo1.bias": [5], "Wo2.weight": [2, 5], "Wo2.bias": [2]},
    )
    for i in range(2):
        shapes |= {f"layers.{i}.a0": [1, 2, 2], f"ln.{i}.weight": [d], f"ln.{i}.bias": [d]}
        for gate, out in (("gen_block", 8), ("gen_value", 4)):
            shapes |= {f"layers.{i}.{gate}.0.weight": [3, d], f"layers.{i}.{gate}.0.bias": [3]}
            shapes |= {f"layers.{i}.{gate}.2.weight": [out, 3], f"layers.{i}.{gate}.2.bias": [out]}
    shapes |= {"ln_final.weight": [d], "ln_final.bias": [d]}
    return [json.dumps({name: {"shape": shape, "kind": "float32"} for name, shape in shapes.items()}).encode()]


KINDS = ["float64", "int64", "bool", "complex64", "meta", "sparse", "list", "none", "expanded"]


def read_released(path: Path) -> object:
    """What a specification says is made of one entry, or of little; what is no specification is refused."""
    specs = parse_json(path.read_bytes(), "specs")
    return LRNN.from_released({name: of_spec(spec) for name, spec in specs.items()} if isinstance(specs, dict) else {})


def of_specs() -> list[Any]:
    return [*KINDS, [1, 10**11], [0], []]


def of_spec(spec: Any) -> Any:
    if not isinstance(spec, dict) or not isinstance(spec.get("shape"), list):
        return spec
    shape, kind = spec["shape"], spec.get("kind")
    if not all(type(size) is int and 0 <= size < 1 << 40 for size in shape) or np.prod(shape, dtype=float) > 2.0**60:
        return shape
    if kind == "list":
        return [0.0] * 3
    if kind == "none":
        return None
    if kind == "meta":
        return torch.zeros(shape, device="meta")
    dtype = getattr(torch, kind) if kind in ("float64", "int64", "bool", "complex64") else torch.float32
    if kind == "expanded" or np.prod(shape, dtype=float) > 1e6:
        return torch.zeros(1).expand(shape)
    made = torch.zeros(shape, dtype=dtype)
    return made.to_sparse() if kind == "sparse" and shape else made


# Certificates


@cache
def certificates() -> list[tuple[Certificate, Any]]:
    parity = zoo.parity()
    index, dense = networks()[1], networks()[0]
    found = [(certify(index, parity), index), (certify(dense, parity, 1), dense)]
    short = replace(found[0][0], horizon=4)
    return [*found, (short, index)]


@cache
def certificate_files() -> list[bytes]:
    return [json.dumps(certificate.to_json()).encode() for certificate, _ in certificates()]


@cache
def arrays() -> list[Any]:
    """Packed arrays: right ones, ones of other types and shapes, and bombs."""
    plain = [
        np.zeros(0),
        np.zeros((1, 1)),
        np.full(3, np.nan),
        np.full(4, 1e300),
        np.ones((2, 1, 2), bool),
        np.arange(3),
    ]
    bomb = base64.b64encode(zlib.compress(bytes(60 << 20), 9)).decode()
    bombs = [{"dtype": "float64", "shape": shape, "data": bomb} for shape in ([60 << 17], [3], [1 << 40], [0, 1 << 62])]
    empty = base64.b64encode(zlib.compress(b"")).decode()
    return [
        *map(pack, plain),
        *bombs,
        {"dtype": "bool", "shape": [1 << 24], "data": empty},
        {"dtype": "O", "shape": [], "data": ""},
    ]


def check_certificate(path: Path) -> object:
    certificate = Certificate.load(path)
    for other, model in certificates():
        if certificate.sha256 == other.sha256:
            check(certificate, model)
    return certificate


BLOCKS = ("householder", "block(1)", "block(2)", "householder(1)", "householder(2)")


@cache
def family_certificates() -> list[bytes]:
    found = [
        represent(zoo.from_task(task), family, short_words=False)
        for task in ("flip_flop", "sum_mod(3)", "ab_star", "group(S3)", "shift_register(2)", "length_mod(5)")
        for family in (*FORCED, "liquid-s4", "liquid-s4-diagonal", *BLOCKS)
    ]
    return [json.dumps(verdict.to_json()).encode() for verdict in found if hasattr(verdict, "to_json")]


@cache
def of_families() -> list[Any]:
    return [
        "1/3", "1/" + "7" * 4_000, "9" * 4_000, [[0, 10**300]], [[1, -1]], 4_620, 5_000, 10**9, [["1"] * 100] * 50,
        "lti", "impossible", "representable", "householder", [0, 0], [[0, 1]] * 2_000, {"frozenset": [1, 2]},
    ]  # fmt: skip


def recheck_file(path: Path) -> object:
    """As `python recheck.py certificate.json` does."""
    try:
        return recheck.main([str(path)])
    except SystemExit as end:
        raise Rejected(end.code) from None


# Training

TINY = Settings(
    "task:parity", embedding_dim=2, block=1, heads=2, normalisation="clip", connection="chain", batch=2, length=3,
    steps=2, test_length=3, test_words=2, evaluate_every=1, stop_at=None, sampler="uniform",
)  # fmt: skip
SWEEP: dict[str, Any] = {
    "preset": "quick", "tasks": ["task:parity", "regex:(ab)*"], "seeds": [0, 1], "lengths": [4], "words": 5,
    "networks": {"mine": {"block": 2, "heads": 3}, "products": {"layer": "householder", "factors": 2}},
    "settings": {"slow": {"learning_rate": 1e-4}, "wide": {"embedding_dim": 8, "connection": "chain"}},
}  # fmt: skip
TOML = (
    "[settings.x]\n", "heads=99999999999\n", "layer='os:path'\n", "a.b.c=1\n", "[[x]]\n", "= ", "'''", '"""',
    "1979-05-27", "nan", "inf", "0x" + "f" * 5_000, "[1,", "{a=1,", "}", "]", "#", "seeds=[1,2]\n",
    "options={factors=3}\n", "\\u0000", "tasks=['task:group(S9)']\n", "lengths=[0]\n",
)  # fmt: skip


@cache
def settings_files() -> list[bytes]:
    others = [TINY, replace(TINY, layer="householder", options={"factors": 2}), replace(TINY, gradient_clip=1.0)]
    return [settings.to_json().encode() for settings in others]


@cache
def of_settings() -> list[Any]:
    return ["householder", "index", "my:Layer", {"factors": 10**9}, "cuda:99999", "mixed", "float64", 99_999_999_999]


@cache
def sweep_files() -> list[bytes]:
    return [json.dumps(SWEEP).encode()]


@cache
def toml_files() -> list[bytes]:
    text = (
        'preset = "quick"\ntasks = ["task:parity"]\nseeds = [0, 1]\n[networks.mine]\nblock = 2\nheads = 3\n'
        "[settings.slow]\nlearning_rate = 1e-4\n"
    )
    return [text.encode()]


def read_settings(path: Path) -> object:
    return Settings.from_json(path.read_bytes())


def sweep_of(path: Path) -> object:
    return Sweep.from_dict(read_sweep(path))


@cache
def run_files() -> list[tuple[dict[str, torch.Tensor], dict[str, str]]]:
    """The checkpoint of a tiny run, by its parts."""
    import tempfile

    from fsa2lrnn.lrnn.tensor_file import open_tensors

    with tempfile.TemporaryDirectory() as folder:
        train(TINY, folder)
        with open_tensors(Path(folder) / run_folder.CHECKPOINT, run_folder.FORM) as file:
            return [(dict(file.tensors()), {k: v for k, v in file.metadata.items() if k != "sha256"})]


@cache
def whole_runs() -> list[bytes]:
    return [model_file(*parts) for parts in run_files()]


def resume(path: Path) -> object:
    folder = path.parent
    (folder / run_folder.SETTINGS).write_text(TINY.to_json())
    path.replace(folder / run_folder.CHECKPOINT)
    return Run(TINY, folder, resume=True)


SHARE = {"accuracy": 0.5, "interval": [0.25, 0.75]}
LENGTH = {"length": 40, "words": 4, "whole": 2, "last": 2, "whole_word": SHARE, "last_position": SHARE}
RESULT = {
    "seed": 3, "end": "steps", "step": 20, "paper_protocol": {"accuracy": None, "looks": 0},
    "last_checkpoint": [LENGTH], "folder": "x", "judged": {"lengths": [40], "words": 4, "letters": 9},
    "task": "task:parity", "command": "",
}  # fmt: skip


@cache
def result_files() -> list[bytes]:
    return [json.dumps(RESULT).encode(), *(path.read_bytes() for path in sorted(MODELS.rglob("*.json"))[:1])]


def read_results(path: Path) -> object:
    return read_result(path, Result), read_result(path, Kept)


@cache
def ledgers() -> list[bytes]:
    return [json.dumps(RESULT).encode()]


def read_ledger(path: Path) -> object:
    path.replace(path.parent / RESULTS)
    return Ledger(path.parent / RESULTS)


@cache
def metrics() -> list[bytes]:
    return [json.dumps(asdict(run_folder.Look(1, 0.5, 0.25, 0.125, 40, 8, 1.5, 3.0, 1e-4, 100.0))).encode()]


def read_metrics(path: Path) -> object:
    path.replace(path.parent / run_folder.METRICS)
    return run_folder.read_records(path.parent)


# Learning


@cache
def word_lines() -> list[bytes]:
    dense = '{"word": ["a", "b"], "outputs": [0, 1]}\n\n{"word": "ba", "output": 1}\n[["b"], 0]\n'
    odd = '[[{"tuple": ["x", 1]}, null], {"tuple": [true]}]\n["", false]\n[[0, 2.5], true]\n'
    return [dense.encode(), odd.encode()]


@cache
def word_tables() -> list[bytes]:
    return [b"word,output\nab,yes\ngo stop,no\n,no\n", b'word,outputs\nab,x y\n"a",y\nab a,x y x\n']


TABLE = (",", '"', "\n", "\r", " ", "\0", "word", "outputs", "a" * 999)


def hostile_lines(rng: random.Random) -> bytes:
    """A file with one line changed as JSON, or as `of_text` changes it."""
    if rng.random() < 0.4:
        return of_text(word_lines, ("[", "]", "{", "}", '"', "word", "output", "1e999", "a" * 999, "\n" * 99))(rng)
    lines = rng.choice(word_lines()).splitlines()
    i = rng.choice([i for i, line in enumerate(lines) if line])
    lines[i] = encoded(json_text(in_json(json.loads(lines[i]), rng), rng))
    return b"\n".join(lines)


LEARNED = Recipe(heads=2, block=3, steps=2, letters=60, hidden=3)
ASKED = Asked("task:parity", "0", "train", "task", 0.1, LEARNED)


def learning() -> Learning:
    examples = FreshWords(zoo.parity())
    return Learning(LEARNED, examples, Target(examples.machine, examples.sampler, examples.outputs), 2)


@cache
def learning_files() -> list[tuple[dict[str, torch.Tensor], dict[str, str]]]:
    """The checkpoint of a tiny run of `learn`, by its parts."""
    import tempfile

    from fsa2lrnn.lrnn.tensor_file import open_tensors

    with tempfile.TemporaryDirectory() as folder:
        run, kept = learning(), RunFolder(Path(folder), ASKED, resume=False)
        run.go(after_step=kept.save)
        with open_tensors(Path(folder) / saving.CHECKPOINT, saving.FORM) as file:
            return [(dict(file.tensors()), {k: v for k, v in file.metadata.items() if k != "sha256"})]


@cache
def whole_learning() -> list[bytes]:
    return [model_file(*parts) for parts in learning_files()]


@cache
def asked_files() -> list[bytes]:
    return [json.dumps(asdict(ASKED)).encode()]


def resume_learning(path: Path) -> object:
    kept = RunFolder(path.parent, ASKED, resume=False)
    path.replace(path.parent / saving.CHECKPOINT)
    return kept.restore(learning())


def read_asked(path: Path) -> object:
    path.replace(path.parent / saving.ASKED)
    return RunFolder(path.parent, ASKED, resume=True)


READERS: dict[str, Reader] = {
    "regex": Reader(regexes, of_text(regexes, REGEX), read_source("regex:")),
    "task": Reader(tasks, hostile_task, read_source("task:")),
    "DOT": Reader(dots, of_text(dots, DOT), read_machine, ".dot"),
    "JFLAP": Reader(jflaps, of_text(jflaps, JFLAP), read_machine, ".jff"),
    "OpenFst": Reader(openfsts, of_text(openfsts, OPENFST), read_machine, ".fst.txt"),
    "OpenFst symbols": Reader(tables, of_text(tables, OPENFST), read_table),
    "JSON machine": Reader(json_machines, of_json(json_machines), read_machine, ".json"),
    "word": Reader(
        lambda: [b"0 1 +", b"10 one"], of_text(lambda: [b"0 1 +", b"10 one 10"], ("0", "10", "one", " ")), read_word
    ),
    "model": Reader(whole_models, hostile_tensors(model_files, "config"), run_model, ".safetensors"),
    "released weights": Reader(
        released_specs, of_json(released_specs, lambda: [*KINDS, [1, 10**11], [0], []]), read_released
    ),
    "certificate": Reader(certificate_files, of_json(certificate_files, arrays), check_certificate, ".json"),
    "family certificate": Reader(
        family_certificates, of_json(family_certificates, of_families), recheck_file, ".json", (Rejected,)
    ),
    "settings": Reader(
        settings_files, of_json(settings_files, of_settings), lambda path: Settings.from_json(path.read_bytes())
    ),
    "sweep JSON": Reader(sweep_files, of_json(sweep_files, of_settings), sweep_of, ".json"),
    "sweep TOML": Reader(toml_files, of_text(toml_files, TOML), sweep_of, ".toml"),
    "run": Reader(whole_runs, hostile_tensors(run_files, "standing"), resume),
    "result": Reader(result_files, of_json(result_files), read_results, ".json"),
    "ledger": Reader(ledgers, of_json(ledgers), read_ledger),
    "metrics": Reader(metrics, of_json(metrics), read_metrics),
    "word lines": Reader(word_lines, hostile_lines, read_words, ".jsonl"),
    "word table": Reader(word_tables, of_text(word_tables, TABLE), read_words, ".csv"),
    "learning": Reader(whole_learning, hostile_tensors(learning_files, "standing"), resume_learning),
    "what was asked": Reader(asked_files, of_json(asked_files), read_asked),
}
