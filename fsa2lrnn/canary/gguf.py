"""Run a canary by llama.cpp: convert its folder by llama.cpp's converter, and read words by the interface in C.

The converter knows the vocabularies of released models only, so the vocabulary is written here, with one token per
letter and output, of the kind of SentencePiece. All else, the names, shapes and orders of tensors, is the converter's.
"""

from __future__ import annotations

import ctypes
import json
import random
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from fsa2lrnn.canary.driver import Refused, Run, attempt, run
from fsa2lrnn.canary.report import CanaryReport, canary_of, chosen, in_process, read_record, report
from fsa2lrnn.errors import CheckpointError
from fsa2lrnn.files import check_file
from fsa2lrnn.optional import require

_SECONDS = 600  # of a conversion
_ERROR = 4  # the level of a message
_CONVERT = """
import json, sys
from pathlib import Path
checkout, folder, *options = sys.argv[1:]
sys.path.insert(0, checkout)
import convert_hf_to_gguf as program
import conversion
from conversion.base import gguf

model = conversion.get_model_class(json.loads(Path(folder, "config.json").read_text())["architectures"][0])
numbers = json.loads(Path(folder, "tokenizer.json").read_text())["model"]["vocab"]

def set_vocab(self):
    texts = sorted(numbers, key=numbers.get)[: json.loads(Path(folder, "config.json").read_text())["vocab_size"]]
    texts += [f"<{i}>" for i in range(len(texts), self.hparams["vocab_size"])]  # some models fill up their vocabulary
    kinds = gguf.TokenType
    self.gguf_writer.add_tokenizer_model("llama")
    self.gguf_writer.add_tokenizer_pre("default")
    self.gguf_writer.add_token_list(texts)
    self.gguf_writer.add_token_scores([0.0] * len(texts))
    self.gguf_writer.add_token_types([kinds.CONTROL if text[0] == "<" else kinds.NORMAL for text in texts])
    for of in ("bos", "eos", "unk"):
        getattr(self.gguf_writer, f"add_{of}_token_id")(len(texts) - 1)
    for add in ("bos_token", "eos_token", "space_prefix"):
        getattr(self.gguf_writer, f"add_add_{add}")(False)

model.set_vocab = set_vocab
sys.argv = [program.__file__, folder, *options, *(["--no-mtp"] if model.supports_mtp_export else [])]
program.main()
"""


def convert(folder: Path, checkout: Path, file: Path, dtype: str = "f32") -> None:
    """Write a canary's folder as a file of llama.cpp, by the converter in a checkout of llama.cpp.

    The type is f32 or bf16: the weights reach 2^24, and f16, also as the scale of quantised blocks, ends at 65,504.

    Raises:
        CheckpointError: if the folder holds no canary, the checkout no converter, or the converter refuses the model.
        OSError: if the file cannot be written.
    """
    read_record(folder)
    check_file(file)
    if not (checkout / "convert_hf_to_gguf.py").is_file():
        raise CheckpointError(f"{checkout} holds no convert_hf_to_gguf.py: give a checkout of llama.cpp")
    arguments = [*map(str, (checkout.absolute(), folder.absolute(), "--outfile", file.absolute())), "--outtype", dtype]
    try:
        done = subprocess.run(
            [sys.executable, "-c", _CONVERT, *arguments], capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise CheckpointError(f"the converter of {checkout} took more than {_SECONDS} s") from None
    if done.returncode or not file.is_file():
        last = (done.stderr.strip().splitlines() or ["no output"])[-1]
        raise CheckpointError(f"the converter of {checkout} fails on {folder}: {last[:300]}")


class Model:
    """A file that llama.cpp has loaded; a context of it keeps the states of up to `SEQUENCES` sequences."""

    def __init__(self, file: Path, words: Sequence[Sequence[int]]) -> None:
        self.c, self.words = require("llama_cpp", None, "a canary of llama.cpp"), words
        said = list[str]()
        self.log = self.c.llama_log_callback(
            lambda level, text, _: said.append(text.decode()) if level == _ERROR else None
        )
        self.c.llama_log_set(self.log, None)
        self.c.llama_backend_init()
        self.model = self.c.llama_model_load_from_file(str(file).encode(), self.c.llama_model_default_params())
        if not self.model:
            why = said[-2 if len(said) > 1 else -1].strip() if said else "nothing said"  # the last names the file alone
            raise CheckpointError(f"{file} does not load by llama.cpp ({why})")
        self.size = self.c.llama_vocab_n_tokens(self.c.llama_model_get_vocab(self.model))

    def context(self, **settings: int) -> Context:
        return Context(self, **settings)


SEQUENCES, _BATCH, _CONTEXT = 8, 512, 4096


class Context:
    """The states of sequences, which calls of `read` go on with; freed with the object."""

    def __init__(self, model: Model, **settings: int) -> None:
        self.model, self.c = model, model.c
        asked = self.c.llama_context_default_params()
        fields = {"n_ctx": _CONTEXT, "n_batch": _BATCH, "n_ubatch": _BATCH, "n_seq_max": SEQUENCES, "n_threads": 1}
        for name, value in {**fields, "n_threads_batch": 1, **settings}.items():
            if not hasattr(asked, name):
                raise Refused(f"this version of llama.cpp has no {name}")
            setattr(asked, name, value)
        self.context = self.c.llama_init_from_model(model.model, asked)
        if not self.context:
            raise Refused(f"llama.cpp makes no context with {settings}")
        self.memory, self.read_so_far = self.c.llama_get_memory(self.context), [0] * SEQUENCES

    def __del__(self) -> None:
        if getattr(self, "context", None):
            self.c.llama_free(self.context)

    def read(self, rows: Sequence[tuple[int, Sequence[int]]]) -> list[list[int]]:
        """Read tokens of (sequence, tokens) in one call, and return the tokens put out after each."""
        tokens = [(sequence, token) for sequence, word in rows for token in word]
        batch = self.c.llama_batch_init(len(tokens), 0, 1)
        batch.n_tokens = len(tokens)
        for i, (sequence, token) in enumerate(tokens):
            batch.token[i], batch.pos[i], batch.n_seq_id[i] = token, self.read_so_far[sequence], 1
            batch.seq_id[i][0], batch.logits[i] = sequence, 1
            self.read_so_far[sequence] += 1
        answer = self.c.llama_decode(self.context, batch)
        self.c.llama_batch_free(batch)
        if answer:
            raise Refused(f"llama_decode returns {answer}")
        shape, out = (self.model.size,), list[int]()
        for i in range(len(tokens)):
            out.append(int(np.ctypeslib.as_array(self.c.llama_get_logits_ith(self.context, i), shape=shape).argmax()))
        at = iter(out)
        return [[next(at) for _ in word] for _, word in rows]

    def pieces(self, word: Sequence[int], borders: Sequence[int], sequence: int = 0) -> list[int]:
        """Read one word in calls that end at the borders and at its end."""
        ends = zip([0, *borders], [*borders, len(word)], strict=True)
        return [token for start, stop in ends for token in self.read([(sequence, word[start:stop])])[0]]

    def remove(self, sequence: int, first: int = 0) -> None:
        """Take back the tokens of a sequence from number `first` on."""
        if not self.c.llama_memory_seq_rm(self.memory, sequence, first, -1):
            raise Refused("llama_memory_seq_rm returns false: a part of a recurrent state cannot be removed")
        self.read_so_far[sequence] = first

    def copy(self, source: int, to: int) -> None:
        """Let a sequence go on from the state of another."""
        self.c.llama_memory_seq_cp(self.memory, source, to, -1, -1)
        self.read_so_far[to] = self.read_so_far[source]

    def move(self, source: int, to: int, context: Context) -> None:
        """Save the state of a sequence, and load it as a sequence of another context."""
        size = self.c.llama_state_seq_get_size(self.context, source)
        buffer = (ctypes.c_uint8 * size)()
        if self.c.llama_state_seq_get_data(self.context, buffer, size, source) != size:
            raise Refused("llama_state_seq_get_data saves less than its size")
        if not self.c.llama_state_seq_set_data(context.context, buffer, size, to):
            raise Refused("llama_state_seq_set_data returns 0")
        context.read_so_far[to] = self.read_so_far[source]


def _whole(model: Model) -> Iterator[Run]:
    for word in model.words:
        yield run("", word, model.context().read([(0, word)])[0], [])


def _token_by_token(model: Model) -> Iterator[Run]:
    word, borders = model.words[0], list(range(1, len(model.words[0])))
    yield run("", word, model.context().pieces(word, borders), borders)


def _chunked_prefill(model: Model) -> Iterator[Run]:
    word, rng = model.words[1], random.Random(0)
    for borders in ([1], [2], [3], [4], [63], [64], [65], [1, 6, 9], sorted(rng.sample(range(1, len(word)), 9))):
        yield run(f"borders {borders}", word, model.context().pieces(word, borders), borders)


def _micro_batches(model: Model) -> Iterator[Run]:
    """One call that llama.cpp itself splits."""
    word = model.words[2]
    for size in (1, 3, 7, 64, 65):
        out = model.context(n_ubatch=size).read([(0, word)])[0]
        yield run(f"n_ubatch {size}", word, out, list(range(size, len(word), size)))


def _together(model: Model, unified: bool = False, lengths: Sequence[int] = (21, 64, 37, 40)) -> Iterator[Run]:
    """Four sequences of other lengths in one call, then in calls of one token of each."""
    context = model.context(kv_unified=unified)
    words = [word[: n + 20] for word, n in zip(model.words, lengths, strict=False)]
    out = context.read([(i, word[:-20]) for i, word in enumerate(words)])
    for j in range(-20, 0):  # in another order at each step
        order = [(i + j) % len(words) for i in range(len(words))]
        for i, more in zip(order, context.read([(i, [words[i][j]]) for i in order]), strict=True):
            out[i] += more
    for i, word in enumerate(words):
        events = [0, *range(len(word) - 20, len(word))]
        yield run(f"sequence {i}", word, out[i], events, others=[*words[:i], *words[i + 1 :]])


def _roll_back(model: Model, snapshots: int = 0, kept: int = 0) -> Iterator[Run]:
    """Wrong letters are read in one call, after `kept` right ones, and taken back.

    The context keeps `snapshots` earlier states of a sequence.
    """
    for n, wrong in ((30, 5), (30, 1), (40, 3), (2, 2)):
        word, other = model.words[0][: n + 24], model.words[1][:wrong]
        context = model.context(n_rs_seq=snapshots) if snapshots else model.context()
        context.read([(0, word[: n - kept])])
        context.read([(0, [*word[n - kept : n], *other])])
        context.remove(0, n)
        out = context.pieces(word[n:], range(1, 24))
        yield run(f"{wrong} of {n + wrong} taken back", word, out, [n], n, wrong=other)


def _branches(model: Model, of: Callable[[Context, Sequence[int]], Context]) -> Iterator[Run]:
    """Let sequences 0 and 1 go on in turn from one prefix."""
    prefix, further = model.words[0][:30], model.words[2:4]
    context = model.context()
    context.read([(0, prefix)])
    context = of(context, prefix)
    out: list[list[int]] = [[], []]
    for j in range(20):
        for i in (0, 1):
            out[i] += context.read([(i, [further[i][j]])])[0]
    for i in (0, 1):
        word, events = [*prefix, *further[i][:20]], list(range(30, 50))
        yield run(f"branch {i}", word, out[i], events, 30, others=[[*prefix, *further[1 - i][:20]]])


def _prefix_shared(model: Model) -> Iterator[Run]:
    def copied(context: Context, _: Sequence[int]) -> Context:
        context.copy(0, 1)
        return context

    yield from _branches(model, copied)


def _state_saved(model: Model) -> Iterator[Run]:
    def moved(context: Context, _: Sequence[int]) -> Context:
        fresh = model.context()
        for i in (0, 1):
            context.move(0, i, fresh)
        return fresh

    yield from _branches(model, moved)


def _sequence_used_again(model: Model) -> Iterator[Run]:
    """A sequence is removed while another stays, and its number reads another word."""
    context, (first, stays, word) = model.context(), model.words[:3]
    context.read([(0, first[:30]), (1, stays[:30])])
    context.remove(0)
    out = context.pieces(word[:40], range(8, 40))
    yield run("new", word[:40], out, [0, *range(8, 40)], others=[first[:30], stays[:30]])
    out = context.pieces(stays[30:60], range(1, 30), 1)
    yield run("other", stays[:60], out, list(range(30, 60)), 30, others=[word[:40], first[:30]])


PATTERNS: dict[str, Callable[[Model], Iterator[Run]]] = {
    "whole": _whole, "token-by-token": _token_by_token, "chunked-prefill": _chunked_prefill,
    "micro-batches": _micro_batches, "sequences": _together, "sequences-unified": partial(_together, unified=True),
    "roll-back": _roll_back, "roll-back-snapshots": partial(_roll_back, snapshots=6, kept=1),
    "roll-back-whole-call": partial(_roll_back, snapshots=6), "prefix-shared": _prefix_shared,
    "state-saved": _state_saved, "sequence-used-again": _sequence_used_again,
}  # fmt: skip


def check_gguf(folder: Path, file: Path, patterns: str | Sequence[str] = "all") -> CanaryReport:
    """Run a canary by every pattern of calls of llama.cpp, as its bindings for Python have it installed.

    It runs in a process of its own, which a failed assertion of llama.cpp ends.

    Raises:
        CheckpointError: if the folder holds no canary, or llama.cpp ends the process.
        MissingPackage: without llama-cpp-python.
        UnsupportedFormat: for an unknown pattern.
    """
    value = read_record(folder)
    names = chosen(patterns, PATTERNS)
    if not file.is_file():
        raise FileNotFoundError(f"{file}: no such file; write it by `fsa2lrnn canary gguf`")
    require("llama_cpp", None, "a canary of llama.cpp")
    program = ["-m", "fsa2lrnn.canary.gguf", str(folder), str(file)]
    first, *rest = in_process(program, names, f"llama.cpp and {file}", {"GGML_NO_BACKTRACE": "1"})
    return report(canary_of(value), rest, first["versions"])


def drive(file: Path, words: Sequence[Sequence[int]], names: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield the versions, then what each pattern did."""
    model = Model(file, words)
    yield {"versions": {"llama-cpp-python": model.c.__version__, "file": file.name}}
    yield from (attempt(name, PATTERNS[name](model)) for name in names)


def main() -> None:
    """Print a line of JSON for the versions and one for each pattern: FOLDER FILE PATTERN …"""
    folder, file, *names = sys.argv[1:]
    for line in drive(Path(file), read_record(Path(folder))["words"], names):
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
