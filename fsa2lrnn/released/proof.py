"""A proof on their own code: every state that a model reaches, one token at a time, compared bit for bit.

A node is what the linear layers keep: S, and of the convolution's window the letters that a tap other than 0 will read.
The first letter goes through a call without a cache, every other through a cached call of one token. When no new node
turns up, what was computed is all that can ever be computed that way, whatever the length of the word.

Three things are used beside the run itself, and looked at before it: taps that are 0 add nothing, numbers being
finite; layers that attend have v and o of zeros, so that they add zeros to the stream however long their cache is; and
zeros are compared without their sign, of which no operation here makes a difference, as nothing is divided by a state.
"""

from __future__ import annotations

from typing import Any

import torch

from fsa2lrnn.automata.language import minimise
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.extras import require
from fsa2lrnn.released.folder import Exported
from fsa2lrnn.released.packages import transformers, versions
from fsa2lrnn.symbols import align
from fsa2lrnn.verdicts import LETTERS, Coverage, FailingWord, Proved, Refuted, Scope, Undecided

BUDGET = 20_000  # nodes

State = tuple[tuple[torch.Tensor, torch.Tensor], ...]  # of each linear layer: window, S


@torch.no_grad()
def prove(
    exported: Exported, machine: MooreMachine | None = None, budget: int = BUDGET
) -> Proved | Refuted | Undecided:
    """Whether the model puts out what the machine does after every word, letters read one at a time.

    Args:
        machine: that it is judged by; None for the one that it was written from.
        budget: nodes after which to give up.

    Raises:
        InvalidMachine: if the machine has other letters.
        UnsupportedFormat: for a model whose layers that attend do not add zeros.
    """
    wanted = minimise(exported.machine if machine is None else machine)
    order = align(exported.machine.alphabet, wanted.alphabet)
    depths = _depths(exported.model)
    _check_attention(exported.model)
    n = len(exported.machine.alphabet)
    tokens = {output: n + j for j, output in enumerate(exported.outputs)}
    scope = Scope(wanted.n_states)
    seen: dict[tuple[bytes, int], int] = {(b"", wanted.start): 0}
    nodes: list[tuple[State | None, int, tuple[int, ...]]] = [(None, wanted.start, ())]
    transitions = 0
    for state, q, word in nodes:  # grows, breadth first
        for a in range(n):
            with transformers():
                after, token = _step(exported.model, state, a, depths)
            reached = int(wanted.delta[order[a], q])
            transitions += 1
            if token != tokens.get(wanted.outputs[reached]):
                return _refuted(exported, wanted, (*word, a), token, scope)
            key = _key(after), reached
            if key not in seen:
                seen[key] = len(nodes)
                nodes.append((after, reached, (*word, a)))
                if len(nodes) > budget:
                    return Undecided(len(word), scope, budget)
    return Proved(len(nodes), transitions, _coverage(exported), scope)


def _coverage(exported: Exported) -> Coverage:
    known = versions()
    kind = type(exported.model).__name__
    code = f"{kind} of transformers {known['transformers']} on torch {known['torch']}, one token a call with its cache"
    return Coverage(exported.dtype, (code,), LETTERS, torch.get_num_threads())


def _depths(model: Any) -> dict[int, int]:
    """How many letters of its window each linear layer reads again, by the number of the layer."""
    found = dict[int, int]()
    for i, layer in enumerate(model.model.layers):
        if (mixer := getattr(layer, "linear_attn", None)) is None:
            continue
        taps = mixer.conv1d.weight[:, 0].ne(0).any(dim=0)  # the last is the current letter's
        lags = [len(taps) - 1 - j for j in range(len(taps)) if taps[j]]
        found[i] = max(lags, default=0)
    return found


def _check_attention(model: Any) -> None:
    """Raises `UnsupportedFormat` unless layers that attend add zeros."""
    for i, layer in enumerate(model.model.layers):
        attention = getattr(layer, "self_attn", None)
        parts = () if attention is None else (attention.v_proj, attention.o_proj)
        if any(tensor.ne(0).any() for part in parts for tensor in part.parameters()):
            raise UnsupportedFormat(
                f"layer {i} attends to more than zeros, so that what a model keeps grows with the word: no proof by "
                "states is possible"
            )


def _step(model: Any, state: State | None, a: int, depths: dict[int, int]) -> tuple[State, int]:
    """What the linear layers keep after one letter, and the token put out."""
    cache = None if state is None else _cache(model, state, depths)
    answer = model(input_ids=torch.tensor([[a]]), past_key_values=cache, use_cache=True)
    kept = list[tuple[torch.Tensor, torch.Tensor]]()
    for i, depth in depths.items():
        layer = answer.past_key_values.layers[i]
        window, S = layer.conv_states[0].clone(), layer.recurrent_states[0].clone()
        window[..., : window.shape[-1] - depth] = 0
        if not (torch.isfinite(window).all() and torch.isfinite(S).all()):
            raise UnsupportedFormat(f"layer {i} keeps numbers that are not finite after token {a}")
        kept.append((window + 0.0, S + 0.0))
    return tuple(kept), int(answer.logits[0, -1].argmax())


def _cache(model: Any, state: State, depths: dict[int, int]) -> Any:
    """A cache as their code makes it, with this state; layers that attend start anew, which adds the same zeros."""
    cache = require("transformers.cache_utils", "hf", "a proof").DynamicCache(config=model.config)
    for i, (window, S) in zip(depths, state, strict=True):
        layer = cache.layers[i]
        layer.update_conv_state(window.clone(), conv_kernel_size=window.shape[-1])
        layer.update_recurrent_state(S.clone())
    return cache


def _key(state: State) -> bytes:
    return b"".join(tensor.float().numpy().tobytes() for pair in state for tensor in pair)


def _refuted(exported: Exported, machine: MooreMachine, word: tuple[int, ...], token: int, scope: Scope) -> Refuted:
    letters = tuple(exported.machine.alphabet[a] for a in word)
    wanted = tuple(machine.transduce(list(letters)))
    n = len(exported.machine.alphabet)
    last = exported.outputs[token - n] if token >= n else f"the letter {exported.machine.alphabet[token]!r}"
    return Refuted(FailingWord(letters, wanted, (*wanted[:-1], last)), len(word) - 1, scope)
