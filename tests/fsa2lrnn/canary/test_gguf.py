"""Canaries in llama.cpp: the patterns, on an interface that answers by the canary itself, and the conversion."""

import ctypes
import json
import sys
from types import SimpleNamespace

import pytest

from fsa2lrnn.canary import gguf
from fsa2lrnn.canary.faults import tokens_of
from fsa2lrnn.canary.gguf import PATTERNS, check_gguf, convert, drive
from fsa2lrnn.canary.machines import recency
from fsa2lrnn.canary.write_model import record
from fsa2lrnn.errors import CheckpointError, UnsupportedFormat
from fsa2lrnn.optional import is_installed

CANARY = recency()


class Interface:
    """Functions of llama.cpp for contexts that keep all states of a sequence, or the last alone."""

    __version__ = "0"

    def __init__(self, keeps_all=False, shares_states=False, fails_to_copy=False):
        self.keeps_all, self.shares_states, self.fails_to_copy = keeps_all, shares_states, fails_to_copy
        self.kept = []
        for name in ("log_callback", "log_set", "backend_init", "model_default_params", "model_get_vocab", "free"):
            setattr(self, f"llama_{name}", lambda *_: 1)
        self.llama_batch_free = self.llama_get_memory = lambda context: context

    def llama_model_load_from_file(self, path, _):
        return path

    def llama_vocab_n_tokens(self, _):
        return 5 + len(CANARY.outputs)

    def llama_context_default_params(self):
        return SimpleNamespace(
            n_ctx=0, n_batch=0, n_ubatch=0, n_seq_max=0, n_threads=0, n_threads_batch=0, kv_unified=0
        )

    def llama_init_from_model(self, *_):
        self.kept.append(SimpleNamespace(states={}, logits=[]))
        return self.kept[-1]

    def llama_batch_init(self, n, *_):
        return SimpleNamespace(
            **{name: [0] * n for name in ("token", "pos", "n_seq_id", "logits")}, seq_id=[[0] for _ in range(n)]
        )

    def llama_decode(self, context, batch):
        context.logits = []
        for token, (sequence,), position in zip(batch.token, batch.seq_id, batch.pos, strict=True):
            sequence = 0 if self.shares_states else sequence
            past = context.states.setdefault(sequence, [CANARY.start])
            assert self.shares_states or position == len(past) - 1
            past.append(CANARY.step(past[-1], token))
            logits = (ctypes.c_float * self.llama_vocab_n_tokens(0))()
            logits[tokens_of(CANARY)(past[-1])] = 1
            context.logits.append(logits)
        return 0

    def llama_get_logits_ith(self, context, i):
        return ctypes.cast(context.logits[i], ctypes.POINTER(ctypes.c_float))

    def llama_memory_seq_rm(self, context, sequence, first, _):
        if first and not self.keeps_all:
            return False
        context.states[sequence] = context.states[sequence][: first + 1]
        return True

    def llama_memory_seq_cp(self, context, source, to, *_):
        context.states[to] = (
            [CANARY.start] * len(context.states[source]) if self.fails_to_copy else list(context.states[source])
        )

    def llama_state_seq_get_size(self, context, source):
        self.moved = list(context.states[source])
        return 8

    def llama_state_seq_get_data(self, *_):
        return 8

    def llama_state_seq_set_data(self, context, _, __, to):
        context.states[to] = list(self.moved)
        return 8


@pytest.fixture
def checked(tmp_path, monkeypatch):
    record_of = record(CANARY, "qwen3.5", "float32", False)
    (tmp_path / "canary.json").write_text(json.dumps(record_of))
    (tmp_path / "model.gguf").write_bytes(b"GGUF")

    def run(patterns="all", **faults):
        monkeypatch.setitem(sys.modules, "llama_cpp", Interface(**faults))

        def here(_, names, *__):
            return json.loads(json.dumps([*drive(tmp_path / "model.gguf", record_of["words"], names)]))

        monkeypatch.setattr(gguf, "in_process", here)
        return check_gguf(tmp_path, tmp_path / "model.gguf", patterns)

    return run


def test_an_interface_without_faults_is_exact_or_refuses(checked):
    found = checked()
    assert not found.wrong
    assert set(found.refused) == {name for name in PATTERNS if name.startswith("roll-back")}
    assert checked("roll-back", keeps_all=True).exact == ("roll-back",)


def test_states_that_are_mixed_up_are_seen(checked):
    assert "sequences" in checked("sequences", shares_states=True).wrong
    found = checked("prefix-shared,whole", fails_to_copy=True)
    assert (found.exact, found.wrong) == (("whole",), ("prefix-shared",))
    assert "the state were zero" in found.explanations["prefix-shared"]


def test_unknown_patterns_and_missing_files_are_refused(checked, tmp_path):
    with pytest.raises(UnsupportedFormat, match="is not known: choose among whole"):
        checked("generate")
    with pytest.raises(FileNotFoundError, match="canary gguf"):
        check_gguf(tmp_path, tmp_path / "none.gguf")


@pytest.mark.skipif(is_installed("llama_cpp"), reason="llama-cpp-python is installed")
@pytest.mark.usefixtures("checked")
def test_without_llama_cpp_the_package_is_named(tmp_path):
    with pytest.raises(ImportError, match="llama_cpp"):
        check_gguf(tmp_path, tmp_path / "model.gguf")


@pytest.mark.usefixtures("checked")
def test_a_conversion_says_what_the_converter_says(tmp_path):
    folder, file, checkout = tmp_path, tmp_path / "out.gguf", tmp_path / "llama.cpp"
    with pytest.raises(CheckpointError, match=r"holds no convert_hf_to_gguf\.py"):
        convert(folder, checkout, file)
    checkout.mkdir()
    (checkout / "convert_hf_to_gguf.py").write_text("raise SystemExit('no such model')")
    with pytest.raises(CheckpointError, match=r"fails on .*no such model"):
        convert(folder, checkout, file)
