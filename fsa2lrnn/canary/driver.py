"""Run a canary model by every pattern of calls that an inference stack uses, and print what it put out as JSON.

    python driver.py FOLDER [PATTERN …]

This file imports torch and transformers alone, so that it runs in the environment under test. A pattern is a function
of a `Stack`; it yields runs: the letters that the model should have read, and the tokens that it put out after them.
One that raises has been refused by the stack with this message.
"""

from __future__ import annotations

import copy
import inspect
import io
import json
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch

Run = dict[str, Any]
"""word: letters; outputs: tokens after the letters from number `first` on; events: the positions at which the stack
could lose state; wrong: letters that were read and taken back there; others: the words of other sequences; padding; row
of the batch; calls of the model, and methods of its cache, up to the run's end."""


class Refused(Exception):
    """The stack has no such interface."""


class Stack:
    """A model of transformers with the words of its folder."""

    def __init__(self, model: Any, words: list[list[int]]) -> None:
        self.model, self.words = model.eval(), words
        self.arguments = inspect.signature(model.forward).parameters
        names = ("cache", "cache_params", "past_key_values")
        self.cache_name = next((name for name in names if name in self.arguments), names[-1])
        self.is_mamba = model.config.model_type in ("mamba", "mamba2", "falcon_mamba")
        # Hybrids had a cache of their own up to 5.4, which `generate` made and a call did not.
        kinds = [kind for name, kind in vars(sys.modules[type(model).__module__]).items() if name.endswith("Cache")]
        self.own_caches = [
            kind for kind in kinds if {"config", "batch_size"} <= set(inspect.signature(kind).parameters)
        ]
        self.generates, self.padding = False, 0
        # Since the last empty cache: (tokens, other arguments) or (a method, its arguments); None is not written as a
        # script.
        self.calls: list[Any] = [None]

    def call(self, rows: list[list[int]], cache: Any = None, before: int = 0, **more: Any) -> tuple[Any, Any]:
        """Read tokens of equally long rows after `before` earlier ones: return the tokens put out, and the cache."""
        if "cache_position" in self.arguments:
            # Mamba's early versions take it for a place in the window: `generate` begins with that after the window.
            start = max(before, self.model.config.conv_kernel) if self.is_mamba and cache is not None else before
            more.setdefault("cache_position", torch.arange(start, start + len(rows[0])))
        if cache is not None:
            more[self.cache_name] = cache
            if self.is_mamba:  # whose masks are those of the letters of the call, all of which count
                more.pop("attention_mask", None)
        else:
            self.calls = [None] if self.own_caches else []  # a script makes no such cache
        self._record(rows, more)
        if cache is None and self.own_caches:
            more[self.cache_name] = self.own_caches[0](self.model.config, len(rows), dtype=self.model.dtype)
        answer = self.model(input_ids=torch.tensor(rows), use_cache=True, **more)
        if (cache := getattr(answer, self.cache_name)) is None:
            raise Refused("a call returns no cache")
        return answer.logits.argmax(-1), cache

    def pieces(self, word: list[int], borders: list[int], cache: Any = None, before: int = 0) -> tuple[list[int], Any]:
        """Read one word in pieces that end at the borders and at its end."""
        out = list[int]()
        for start, stop in zip([0, *borders], [*borders, len(word)], strict=True):
            tokens, cache = self.call([word[start:stop]], cache, before + start)
            out += tokens[0].tolist()
        return out, cache

    def once(self, row: list[int], **more: Any) -> list[int]:
        """Read one row without a cache."""
        self.calls = []
        self._record([row], more)
        return self.model(input_ids=torch.tensor([row]), use_cache=False, **more).logits[0].argmax(-1).tolist()

    def _record(self, rows: list[list[int]], more: dict[str, Any]) -> None:
        plain = {name: value.tolist() if torch.is_tensor(value) else value for name, value in more.items()}
        self.calls.append((rows, {name: value for name, value in plain.items() if name != self.cache_name}))

    def decode(
        self, out: list[list[int]], further: list[list[int]], cache: Any, before: int, mask: Any = None
    ) -> list[list[int]]:
        """Read one token of each row a call, and return what the rows put out so far and then."""
        for j in range(len(further[0])):
            more = {} if mask is None else {"attention_mask": torch.cat([mask, mask.new_ones(len(further), j + 1)], 1)}
            tokens, cache = self.call([[word[j]] for word in further], cache, before + j, **more)
            out = [[*old, *new] for old, new in zip(out, tokens.tolist(), strict=True)]
        return out

    def change(self, cache: Any, name: str, *arguments: Any) -> None:
        """Call a method of the cache, or raise `Refused` if it has none of that name."""
        if not hasattr(cache, name):
            raise Refused(f"{type(cache).__name__} has no method {name}")
        self.calls.append((name, [value.tolist() if torch.is_tensor(value) else value for value in arguments]))
        getattr(cache, name)(*arguments)


def run(name: str, word: Sequence[int], outputs: list[int], events: list[int], first: int = 0, **more: Any) -> Run:
    return {"name": name, "word": list(word), "first": first, "outputs": outputs, "events": events, **more}


PATTERNS: dict[str, Callable[[Stack], Iterator[Run]]] = {}


def pattern(of: Callable[[Stack], Iterator[Run]]) -> Callable[[Stack], Iterator[Run]]:
    PATTERNS[of.__name__.replace("_", "-")] = of
    return of


@pattern
def whole(stack: Stack) -> Iterator[Run]:
    """Whole words, without a cache."""
    for word in stack.words:
        yield run("", word, stack.once(word), [])


@pattern
def token_by_token(stack: Stack) -> Iterator[Run]:
    """One token a call, with a cache."""
    word = stack.words[0]
    borders = list(range(1, len(word)))
    yield run("", word, stack.pieces(word, borders)[0], borders)


@pattern
def prefill_then_decode(stack: Stack) -> Iterator[Run]:
    """The first letters in one call, the rest one token per call."""
    for n in (1, 2, 3, 4, 5, 63, 64, 65):
        word = stack.words[n % len(stack.words)][: n + 24]
        yield run(f"prefill of {n}", word, stack.pieces(word, list(range(n, len(word))))[0], list(range(n, len(word))))


@pattern
def chunked_prefill(stack: Stack) -> Iterator[Run]:
    """Several calls of several tokens, with a cache."""
    word, rng = stack.words[1], random.Random(0)
    n = len(word)
    for borders in (
        [1], [2], [3], [4], [63], [64], [65], [1, 6, 9], list(range(7, n, 7)), list(range(64, n, 64)),
        sorted(rng.sample(range(1, n), 9)), [n // 2, n // 2 + 1, n // 2 + 3],
    ):  # fmt: skip
        yield run(f"borders {borders[:6]}", word, stack.pieces(word, borders)[0], borders)


def _padded(stack: Stack, left: bool) -> tuple[list[list[int]], torch.Tensor, list[int]]:
    """Return rows of three lengths, filled up with a letter, and their attention mask."""
    words = [word[:n] for word, n in zip(stack.words, (40, 33, 70), strict=False)]
    width = max(map(len, words))
    rows, mask = list[list[int]](), torch.zeros(len(words), width, dtype=torch.long)
    for i, word in enumerate(words):
        filled = [0] * (width - len(word))
        rows.append([*filled, *word] if left else [*word, *filled])
        mask[i, slice(width - len(word), None) if left else slice(0, len(word))] = 1
    return rows, mask, [len(word) for word in words]


@pattern
def left_padding(stack: Stack) -> Iterator[Run]:
    """A batch padded on the left, in one call."""
    rows, mask, lengths = _padded(stack, left=True)
    tokens, _ = stack.call(rows, attention_mask=mask)
    for i, (row, out, n) in enumerate(zip(rows, tokens.tolist(), lengths, strict=True)):
        yield run(f"{len(row) - n} pads", row[-n:], out[-n:], [0], padding=len(row) - n, row=i)


@pattern
def left_padding_decode(stack: Stack) -> Iterator[Run]:
    """A batch padded on the left, then one token per call."""
    rows, mask, lengths = _padded(stack, left=True)
    further = [word[n : n + 20] for word, n in zip(stack.words, lengths, strict=False)]
    tokens, cache = stack.call(rows, attention_mask=mask)
    out = [t[-n:] for t, n in zip(tokens.tolist(), lengths, strict=True)]
    out = stack.decode(out, further, cache, len(rows[0]), mask)
    for i, (row, n) in enumerate(zip(rows, lengths, strict=True)):
        word = [*row[-n:], *further[i]]
        yield run(f"{len(row) - n} pads", word, out[i], [0, *range(n, len(word))], padding=len(row) - n, row=i)


@pattern
def right_padding(stack: Stack) -> Iterator[Run]:
    """A batch padded on the right, in one call."""
    rows, mask, lengths = _padded(stack, left=False)
    tokens, _ = stack.call(rows, attention_mask=mask)
    for row, out, n in zip(rows, tokens.tolist(), lengths, strict=True):
        yield run(f"{len(row) - n} pads", row[:n], out[:n], [])


@pattern
def right_padding_decode(stack: Stack) -> Iterator[Run]:
    """A batch padded on the right, then one token per call."""
    rows, mask, lengths = _padded(stack, left=False)
    _, cache = stack.call(rows, attention_mask=mask)
    further = [word[n : n + 20] for word, n in zip(stack.words, lengths, strict=False)]
    out = stack.decode([[] for _ in rows], further, cache, len(rows[0]), mask)
    for i, (row, n) in enumerate(zip(rows, lengths, strict=True)):
        yield run(f"{len(row) - n} pads", [*row[:n], *further[i]], out[i], [n], n, after=len(row) - n, row=i)


def _batch(stack: Stack, rows: int, n: int) -> tuple[list[list[int]], Any, list[list[int]]]:
    words = [word[:n] for word in stack.words[:rows]]
    tokens, cache = stack.call(words)
    return words, cache, tokens.tolist()


@pattern
def batch(stack: Stack) -> Iterator[Run]:
    """Different words in one batch: prefill, then one token per call."""
    words, cache, out = _batch(stack, 4, 30)
    further = [word[30:60] for word in stack.words[:4]]
    out = stack.decode(out, further, cache, 30)
    for i, word in enumerate(words):
        full = [*word, *further[i]]
        yield run(f"row {i}", full, out[i], list(range(30, 60)), others=_others(stack.words[:4], i), row=i)


def _others(words: list[list[int]], i: int) -> list[list[int]]:
    return [word for j, word in enumerate(words) if j != i]


def _continued(stack: Stack, cache: Any, of_row: list[int], words: list[list[int]]) -> Iterator[Run]:
    """Yield a run per row, where row i goes on from the cache of `words[of_row[i]]` with letters of its own."""
    n = len(words[0])
    further = [stack.words[-1 - i][:20] for i in range(len(of_row))]
    out = stack.decode([[] for _ in of_row], further, cache, n)
    read = [[*words[number], *further[i]] for i, number in enumerate(of_row)]
    left = [word for number, word in enumerate(words) if number not in of_row]
    for i, (number, word) in enumerate(zip(of_row, read, strict=True)):
        events, others = list(range(n, len(word))), [*_others(read, i), *left]
        yield run(f"row {i} of {number}", word, out[i], events, n, others=others, row=i)


def _changed(stack: Stack, rows: int, of_row: list[int], method: str, argument: Any) -> Iterator[Run]:
    """Let rows of a batch go on after a method of the cache made row `of_row[i]` the new row i."""
    words, cache, _ = _batch(stack, rows, 30)
    stack.change(cache, method, argument)
    yield from _continued(stack, cache, of_row, words)


PATTERNS |= {
    "beams-reordered": partial(
        _changed, rows=4, of_row=[2, 3, 0, 0], method="reorder_cache", argument=torch.tensor([2, 3, 0, 0])
    ),
    "rows-selected": partial(
        _changed, rows=4, of_row=[3, 1], method="batch_select_indices", argument=torch.tensor([3, 1])
    ),
    "rows-repeated": partial(_changed, rows=2, of_row=[0, 0, 1, 1], method="batch_repeat_interleave", argument=2),
}


def _cropped(stack: Stack, recording: bool) -> Iterator[Run]:
    """Wrong letters are read in one call and taken back by `crop`, if asked to after `activate_past_recording`."""
    for n, wrong in ((30, 5), (30, 1), (40, 3), (2, 2)):
        word, other = stack.words[0], stack.words[1][:wrong]
        cache = None
        if recording:
            from transformers import DynamicCache

            cache = DynamicCache(config=stack.model.config)
            stack.change(cache, "activate_past_recording")
        _, cache = stack.call([word[:n]], cache)
        if recording:
            cache.crop(0)
        _, cache = stack.call([other], cache, n)
        stack.change(cache, "crop", -wrong)
        out, _ = stack.pieces(word[n : n + 24], list(range(1, 24)), cache, n)
        yield run(f"{wrong} of {n + wrong} taken back", word[: n + 24], out, [n], n, wrong=other)


PATTERNS |= {
    "roll-back": partial(_cropped, recording=False), "roll-back-recorded": partial(_cropped, recording=True),
}  # fmt: skip


def _packed(stack: Stack, **more: Any) -> Iterator[Run]:
    words = [word[:n] for word, n in zip(stack.words, (21, 64, 37), strict=False)]
    joined = [letter for word in words for letter in word]
    positions = [i for word in words for i in range(len(word))]
    out, at = stack.once(joined, position_ids=torch.tensor([positions]), **more), 0
    for i, word in enumerate(words):
        before = [letter for other in words[:i] for letter in other]
        yield run(f"word {i}", word, out[at : at + len(word)], [0], others=[before] if before else [])
        at += len(word)


@pattern
def packed_by_positions(stack: Stack) -> Iterator[Run]:
    """Several words in one row, told apart by `position_ids`."""
    yield from _packed(stack)


@pattern
def packed_by_lengths(stack: Stack) -> Iterator[Run]:
    """Several words in one row, told apart by `position_ids`, `cu_seq_lens_q` and `seq_idx`."""
    borders = torch.tensor([0, 21, 85, 122], dtype=torch.int32)
    index = torch.repeat_interleave(torch.arange(3, dtype=torch.int32), torch.tensor([21, 64, 37]))[None]
    yield from _packed(
        stack, cu_seq_lens_q=borders, cu_seq_lens_k=borders, max_length_q=64, max_length_k=64, seq_idx=index
    )


@pattern
def cache_saved(stack: Stack) -> Iterator[Run]:
    """A cache is saved by `torch.save`, loaded, and continued."""
    words, cache, _ = _batch(stack, 2, 30)
    file = io.BytesIO()
    torch.save(cache, file)
    file.seek(0)
    stack.calls.append(None)
    yield from _continued(stack, torch.load(file, weights_only=False), [0, 1], words)


@pattern
def prefix_shared(stack: Stack) -> Iterator[Run]:
    """Two words go on in turn from copies of one cache."""
    prefix, n = stack.words[0][:30], 30
    _, cache = stack.call([prefix])
    stack.calls.append(None)
    caches, further, out = [copy.deepcopy(cache), copy.deepcopy(cache)], stack.words[2:4], [[], []]
    for j in range(20):
        for i in (0, 1):
            tokens, caches[i] = stack.call([[further[i][j]]], caches[i], n + j)
            out[i] += tokens[0].tolist()
    for i in (0, 1):
        word = [*prefix, *further[i][:20]]
        yield run(f"branch {i}", word, out[i], list(range(n, n + 20)), n, others=[[*prefix, *further[1 - i][:20]]])


@pattern
def cache_used_again(stack: Stack) -> Iterator[Run]:
    """A cache that was reset reads another word."""
    _, cache = stack.call([stack.words[0][:30]])
    stack.change(cache, "reset")
    word = stack.words[1][:40]
    out, _ = stack.pieces(word, list(range(8, 40)), cache)
    yield run("", word, out, [0, *range(8, 40)], others=[stack.words[0][:30]])


@pattern
def compiled(stack: Stack) -> Iterator[Run]:
    """`torch.compile` of the model, its graphs executed as they are: a prefill, then one token a call."""
    other, word, borders = copy.copy(stack), stack.words[0][:42], list(range(30, 42))
    other.model = torch.compile(stack.model, backend="eager")
    yield run("", word, other.pieces(word, borders)[0], borders)


def _generated(stack: Stack, length: int = 120, **more: Any) -> Iterator[Run]:
    """`generate` after prompts of three lengths, greedy or as its other arguments say."""
    if not stack.generates:
        raise Refused("this canary tracks: its outputs are no letters; make one with --kind generate")
    for n in (1, 5, 64):
        prompt = stack.words[0][:n]
        made = stack.model.generate(
            input_ids=torch.tensor([prompt]), attention_mask=torch.ones(1, n, dtype=torch.long), max_new_tokens=length,
            min_new_tokens=length, do_sample=False, pad_token_id=stack.padding, **more,
        )[0].tolist()  # fmt: skip
        if len(made) != n + length:
            raise Refused(f"generate ends after {len(made) - n} of {length} tokens")
        # After the prompt and each letter put out the model put out the next.
        yield run(f"prompt of {n}", made[:-1], made[n:], list(range(n, len(made) - 1)), n - 1, is_generated=True)


PATTERNS["generate"] = _generated


@pattern
def generate_padded(stack: Stack) -> Iterator[Run]:
    """`generate` for a batch padded on the left."""
    if not stack.generates:
        raise Refused("this canary tracks: its outputs are no letters; make one with --kind generate")
    rows, mask, lengths = _padded(stack, left=True)
    made = stack.model.generate(
        input_ids=torch.tensor(rows), attention_mask=mask, max_new_tokens=60, min_new_tokens=60, do_sample=False,
        pad_token_id=stack.padding,
    ).tolist()  # fmt: skip
    for row, n in zip(made, lengths, strict=True):
        word = row[-60 - n :]
        events = [0, *range(n, len(word) - 1)]
        yield run(f"{len(row) - 60 - n} pads", word[:-1], word[n:], events, n - 1, is_generated=True)


@pattern
def generate_assisted(stack: Stack) -> Iterator[Run]:
    """`generate` with an assistant, the same model with another first embedding, which is wrong at some letters."""
    helper = copy.deepcopy(stack.model)
    with torch.no_grad():
        weight = helper.get_input_embeddings().weight
        weight[[0, 1]] = weight[[1, 0]].clone()
    yield from _generated(stack, assistant_model=helper)


PATTERNS |= {
    "generate-beams": partial(_generated, length=40, num_beams=2),
    "generate-lookup": partial(_generated, prompt_lookup_num_tokens=4),  # candidates from the text before
    "generate-static": partial(_generated, cache_implementation="static"),
    "generate-chunked": partial(_generated, prefill_chunk_size=7),
}


def drive(
    model: Any, words: list[list[int]], generates: bool, padding: int, names: list[str]
) -> Iterator[dict[str, Any]]:
    """Yield what each pattern did, as `attempt` says it."""
    stack = Stack(model, words)
    stack.generates, stack.padding = generates, padding
    for name in names:
        stack.calls = [None]  # a pattern that makes none by `call` or `once` has no script
        with torch.no_grad():
            yield attempt(
                name, ({"calls": list(stack.calls), "cache": stack.cache_name, **one} for one in PATTERNS[name](stack))
            )


def attempt(name: str, runs: Iterator[Run]) -> dict[str, Any]:
    """Return what a pattern did: "status" ran or refused, with runs or a message, and seconds."""
    began = time.perf_counter()
    done: dict[str, Any] = {"pattern": name, "status": "ran", "message": "", "runs": []}
    try:
        for one in runs:
            done["runs"].append(one)
    except Exception as fault:  # whatever the stack raises: it said so, instead of answering wrongly
        done |= {"status": "refused", "message": " ".join(f"{type(fault).__name__}: {fault}".split())[:300]}
    return done | {"seconds": round(time.perf_counter() - began, 2)}


def load(automodel: Any, folder: str | Path) -> Any:
    """Load a folder as its users do; raise `ValueError` where its weights are not those of the classes that load it.

    A version that reads the settings otherwise builds other layers, and warns of that alone.
    """
    model, told = automodel.from_pretrained(folder, local_files_only=True, output_loading_info=True)
    if odd := [name for kind in ("missing_keys", "unexpected_keys", "mismatched_keys") for name in told.get(kind, ())]:
        raise ValueError(f"{len(odd)} weights do not fit the layers that this version builds, such as {odd[0]}")
    return model


def main() -> None:
    """Load a folder as its users do, and print a line of JSON per pattern."""
    folder, *names = sys.argv[1:]
    known = json.loads((Path(folder) / "canary.json").read_text(encoding="utf-8"))
    import transformers

    transformers.logging.set_verbosity_error()
    model = load(transformers.AutoModelForCausalLM, folder)
    versions = {"transformers": transformers.__version__, "torch": torch.__version__}
    print(json.dumps({"versions": versions, "model": type(model).__name__}), flush=True)
    for done in drive(model, known["words"], known["generates"], known["padding"], names or list(PATTERNS)):
        print(json.dumps(done), flush=True)


if __name__ == "__main__":
    main()
