"""Tests of the declarations of a user-defined layer against its computations, on random inputs.

A declaration that fails here is false. One that passes was tested, not proved, and verdicts that depend on it say so
(`Coverage.tested_layers`). The test suite applies the same rules to the library's own layers, so models of these are
not tested again at each use.

Inputs and states come from a separate generator: torch's global generator and the model's tensors do not change. Words
are short; words that would need more than `_ENTRIES` numbers are omitted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from fsa2lrnn.checker.rounding import FloatFormat
from fsa2lrnn.errors import Fsa2LrnnError, UnsupportedFormat, shortened
from fsa2lrnn.layers import DESCRIPTIONS, is_family
from fsa2lrnn.nn.gate import Gate
from fsa2lrnn.nn.layers import LAYERS, OURS
from fsa2lrnn.nn.layers.base import Layer
from fsa2lrnn.nn.model import LRNN
from fsa2lrnn.nn.rounded_numbers import RoundedNumbers, integers

TOLERANCES = {torch.float64: 1e-10, torch.float32: 1e-4, torch.float16: 2e-2, torch.bfloat16: 1e-1}
"""The largest difference that counts as rounding, relative to the largest number up to that step or to 1."""
_CASES = ((3, False), (2, True), (1, False), (1, True), (0, True), (21, True))
"""The lengths of the test words, and whether they start from states other than x₀. A word of 3 shows most faults."""
_WORDS = 3  # words per batch; each is also read alone
_ENTRIES = 1 << 22  # numbers that a call may materialise; a single step may need more
_LETTERS = 1024  # largest number of letters per call
_ALONE = 8  # rows that are read one by one for comparison
_SHORT = 3  # length that every layer has to read; it may refuse longer words by an error of this library


class FalseDeclaration(UnsupportedFormat):
    """The error for a user-defined layer that contradicts its declarations or the rules for layers."""


def user_layers(model: LRNN) -> tuple[str, ...]:
    """Return the distinct names of a model's user-defined layers; for an unregistered layer the name of its class."""
    own = [layer for layer in model.recurrences if type(layer) not in OURS]
    return tuple(dict.fromkeys(map(_name, own)))


def check_layers(model: object) -> None:
    """Test the user-defined layers of a model on random inputs; a module other than an `LRNN` has no layers to test.

    They are called in their current mode: dropout counts as random until `model.eval()` is called.

    Raises:
        FalseDeclaration: with the layer, the rule that it breaks, the number of inputs and the difference.

    >>> from fsa2lrnn.nn import BlockLayerConfig, LRNNConfig
    >>> check_layers(LRNN(LRNNConfig(("a", "b"), (0, 1), (BlockLayerConfig((2,), 3, 3),))))
    """
    if isinstance(model, LRNN):
        for place, layer in enumerate(model.recurrences):
            if type(layer) not in OURS:
                check_layer(model, place)


def check_layer(model: LRNN, place: int) -> None:
    """Test the layer at index `place`, and an adjacent embedding or read-out; raise `FalseDeclaration`."""
    test = _LayerTest(model, place)
    with _undisturbed(test):
        test.run()


def same(a: Tensor, b: Tensor) -> bool:
    """Return whether two tensors hold the same numbers, with NaN at the same positions."""
    return torch.equal(a.nan_to_num(), b.nan_to_num()) and torch.equal(a.isnan(), b.isnan())


def _name(layer: Layer) -> str:
    return next((name for name, kind in LAYERS.items() if kind is type(layer)), type(layer).__name__)


@contextmanager
def _undisturbed(test: _LayerTest) -> Iterator[None]:
    """Restore tensors and random numbers after a test; raise `FalseDeclaration` if reading changed a tensor."""
    model = test.model
    tensors = dict([*model.named_parameters(), *model.named_buffers()])
    before = {name: tensor.detach().clone() for name, tensor in tensors.items()}
    changed: list[str] = []
    with torch.random.fork_rng(devices=[model.device] if model.device.type == "cuda" else []), torch.no_grad():
        try:
            yield
        finally:
            # The tensors are restored before the error is raised, so that a failed check leaves the model as it was.
            changed = [name for name, tensor in tensors.items() if not same(tensor, before[name])]
            for name in changed:
                tensors[name].copy_(before[name])
    if changed:
        raise test.fault(f"reading changes {', '.join(changed[:4])}: let the state be all that a layer remembers")


@contextmanager
def _if_offered() -> Iterator[None]:
    try:
        yield
    except FalseDeclaration:
        raise
    except Fsa2LrnnError:
        pass


# Outputs (B, T, width) and the state after them (B, …), None if it is not compared.
_Reading = tuple[Tensor, Tensor | None]


class _LayerTest:
    def __init__(self, model: LRNN, place: int) -> None:
        kind, shift = model.config.layers[place], 2 if model.config.token_shift else 1
        self.model, self.place, self.layer, self.dtype = model, place, model.recurrences[place], model.dtype
        self.title = f"{_name(self.layer)} (layers.{place}, {str(self.dtype).removeprefix('torch.')})"
        self.generator = torch.Generator().manual_seed(place)
        self.tolerance = TOLERANCES.get(self.dtype, max(TOLERANCES.values()))
        self.width = None if kind.reads_letters else kind.width  # None: a layer of indices outputs state indices
        self.width_in = shift * model.config.stream_widths[place]
        self.entries = max(1, kind.entries)  # of one step

    def run(self) -> None:
        """Run all tests. Raises `FalseDeclaration` at the first that fails."""
        family = self.layer.family
        if not (family is None or is_family(family)):
            names = ", ".join(DESCRIPTIONS)
            raise self.fault(f"family = {family!r} is not the name of one: return None or one of {names}")
        self._check_start()
        if self.layer.has_tables:
            # The size of a table is known only from a call; it limits the lengths of the test words.
            self.entries = max(self.entries, self._tables(self._normal(1, self.width_in))[0].numel())
        for length, is_carried in _CASES if self.width is not None else ():
            # Every layer is tested on words of length 0 or 1, however many numbers a step has.
            if length <= max(1, _ENTRIES // self.entries // _WORDS):
                rows = self._normal(max(1, _WORDS * length), self.width_in)
                index = torch.arange(_WORDS * length, device=rows.device).view(_WORDS, length)
                self._check_words(rows, index, self._states(_WORDS, rows if is_carried else None))
        if self.place == 0:
            self._check_letters(self._letters())
        elif self.layer.has_tables:
            self._check_tables(self._normal(3, self.width_in))
        if self.place + 1 == len(self.model.layers) and self.width is not None:
            self._check_readout()

    def fault(self, text: str) -> FalseDeclaration:
        """Return the error for a broken rule."""
        return FalseDeclaration(f"layer {self.title} breaks a rule of docs/guides/add-a-layer.md: {text}")

    # Inputs and states

    def _normal(self, *shape: int) -> Tensor:
        drawn = torch.randn(shape, generator=self.generator, dtype=torch.float64)
        return drawn.to(self.model.device, self.dtype)

    def _numbers(self, below: int, *shape: int) -> Tensor:
        return torch.randint(below, shape, generator=self.generator).to(self.model.device)

    def _letters(self) -> Tensor:
        """Return the first layer's input for each letter (with token shift, for each pair with another): (|Σ|, d)."""
        model, n = self.model, len(self.model.alphabet)
        tokens = self._numbers(n, 3, 7)
        rows = self._run("embedding", model.embedding, torch.arange(n, device=model.device)[:, None])[:, 0]
        in_words = self._run("embedding", model.embedding, tokens)
        self._compare(in_words, rows[tokens], "`embedding` of a letter depends on where it stands: look letters up")
        rows = model.norms[0](rows) if model.config.layer_norm is True else rows
        if self.layer.takes_index and self.width is not None:
            rule = "takes_index is declared, but the weight of `embedding` is not what it gives: return nn.Embedding"
            self._compare(model.first_inputs(), rows, rule)
        return torch.cat([rows, rows.roll(1, 0)], dim=-1) if model.config.token_shift else rows

    def _states(self, batch: int, rows: Tensor | None) -> Tensor:
        """Return x₀ if `rows` is None or the layer is not causal, else other states.

        These are random if the layer declares tables, which apply to all states; otherwise they are the states after
        two of the rows (N, d).
        """
        start = self._call("initial_state", batch).contiguous()
        if rows is None or not self.layer.is_causal:
            return start
        if self.layer.has_tables:
            return self._normal(*start.shape)
        # A layer without tables may allow only states that it reaches, so two random rows lead to one.
        return self._read(rows[self._numbers(len(rows), batch, 2)], start)[1]

    # Calls, and the form of their results

    def _run(self, name: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function. Raises `FalseDeclaration` if it fails or changes its arguments."""
        copies = [part.clone() if isinstance(part, Tensor) else part for part in arguments]
        try:
            result = function(*copies)
        except Fsa2LrnnError:
            raise
        except Exception as error:
            shapes = shortened(str([tuple(part.shape) if isinstance(part, Tensor) else part for part in copies]))
            why = shortened(f"{type(error).__name__}: {error}")
            raise self.fault(f"`{name}` fails for the arguments {shapes}, tensors by their shapes ({why})") from error
        for part, before in zip(copies, arguments, strict=True):
            if isinstance(part, Tensor) and not same(part, before):
                raise self.fault(f"`{name}` changes its arguments in place: return new tensors")
        return result

    def _call(self, name: str, *arguments: object) -> Any:
        return self._run(name, self.layer if name == "forward" else getattr(self.layer, name), *arguments)

    def _form(self, what: str, result: object, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
        """Return the result. Raises `FalseDeclaration` unless it is a tensor of this shape and dtype."""
        if not isinstance(result, Tensor):
            raise self.fault(f"{what} is a {type(result).__name__}: return a tensor of shape {shape}")
        if tuple(result.shape) != shape or result.dtype != dtype:
            form = f"{result.dtype} of shape {tuple(result.shape)}"
            raise self.fault(f"{what} is {form}: return {dtype} of shape {shape}")
        return result

    def _pair(self, name: str, result: object) -> tuple[Any, Any]:
        if not isinstance(result, tuple) or len(result) != 2:
            raise self.fault(f"`{name}` returns a {type(result).__name__}: return a tuple of two tensors")
        return result

    def _outputs(self, what: str, y: object, lead: tuple[int, ...], state: Tensor) -> Tensor:
        if self.width is None:
            return self._form(what, y, lead, state.dtype)
        return self._form(what, y, (*lead, self.width), self.dtype)

    def _both(self, name: str, result: object, lead: tuple[int, ...], state: Tensor) -> tuple[Tensor, Tensor]:
        """Return the outputs and the state that a method returns. Raises `FalseDeclaration` for another form."""
        y, after = self._pair(name, result)
        self._form(f"the state that `{name}` returns", after, tuple(state.shape), state.dtype)
        return self._outputs(f"the first of what `{name}` returns", y, lead, state), after

    def _read(self, u: Tensor, state: Tensor, method: str = "auto", *index: Tensor) -> tuple[Tensor, Tensor]:
        """Read inputs (B, T, d), or rows (N, d) by their indices (B, T)."""
        lead = tuple((*index, u)[0].shape[:2])
        return self._both("forward", self._call("forward", u, state, method, *index), lead, state)

    def _steps(self, u: Tensor, x: Tensor) -> _Reading:
        outputs = list[Tensor]()
        for u_k in u.unbind(1):
            y, x = self._both("step", self._call("step", u_k, x), (len(u),), x)
            outputs.append(y)
        return torch.stack(outputs, 1), x

    def _tables(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        shape = tuple(self._call("initial_state", 1).shape[1:])
        if len(shape) != 2 or shape[0] * shape[1] != self.width:
            raise self.fault(f"tables are declared: give states the shape (B, H, b), H·b = {self.width}, not {shape}")
        A, v = self._pair("tables", self._call("tables", rows))
        self._form("the first of what `tables` returns", A, (len(rows), *shape, shape[1]), self.dtype)
        return A, self._form("the second of what `tables` returns", v, (len(rows), *shape), self.dtype)

    def _by_tables(self, rows: Tensor, index: Tensor, x: Tensor) -> _Reading:
        """Run the recurrence of the tables of rows (N, d), selected by indices (B, T)."""
        (A, v), outputs = self._tables(rows), list[Tensor]()
        for i in index.unbind(1):
            x = torch.einsum("nhij,nhj->nhi", A[i], x) + v[i]
            outputs.append(x.flatten(1))
        return torch.stack(outputs, 1), x

    # Tests

    def _check_start(self) -> None:
        """Check that `initial_state` and `emit` give each word of a batch the same, alone and together.

        (B, …) -> (B, width); with tables a state is (B, H, b), and `emit` flattens it.
        """
        alone = self._call("initial_state", 1)
        if not isinstance(alone, Tensor) or not alone.ndim or len(alone) != 1:
            raise self.fault("`initial_state` of 1 word returns no tensor of shape (1, …)")
        dtype = self.dtype if alone.is_floating_point() else alone.dtype
        together = self._call("initial_state", 3)
        self._form("`initial_state` of 3 words", together, (3, *alone.shape[1:]), dtype)
        if not same(together, alone.expand_as(together)):
            raise self.fault("`initial_state` differs between words or with their number: give all words the same")
        state = self._normal(*together.shape) if self.layer.has_tables else together.contiguous()
        y = self._outputs("what `emit` returns", self._call("emit", state), (3,), state)
        alone = torch.cat([self._call("emit", row) for row in state.split(1)])
        self._compare(alone, y, "`emit` gives a state other outputs in a batch than alone, or is random")
        if self.layer.has_tables:
            self._compare(y, state.flatten(1), "tables are declared: let `emit` return the state, flattened")

    def _check_words(self, rows: Tensor, index: Tensor, state: Tensor, tolerance: float | None = None) -> None:
        """Check that all ways to read words (B, T) of these rows (N, d) give the same outputs and last states."""
        u = rows[index]
        try:
            y, after = self._read(u, state)
        except Fsa2LrnnError as error:
            if u.shape[1] <= _SHORT or isinstance(error, FalseDeclaration):
                raise
            return
        # What is NaN cannot be compared. `tables` say what the first step gives; overflow may make later ones infinite.
        if self.layer.has_tables and y[:, :1].isnan().any():
            A, v = self._call("tables", u[:, 0])
            if all(part.isfinite().all() for part in (A, v, state)):
                raise self.fault("`forward` returns NaN, where `tables` and the state are finite")
        where = f" ({len(index)} words of {index.shape[1]} inputs)"
        for rule, (other_y, other_after) in self._readings(rows, index, state):
            self._compare(other_y, y[:, : other_y.shape[1]], rule + where, tolerance, is_sequence=True)
            if other_after is not None:
                self._compare(other_after, after, f"{rule}{where}, in the state", tolerance)

    def _readings(self, rows: Tensor, index: Tensor, state: Tensor) -> Iterator[tuple[str, _Reading]]:
        """Yield other ways to read the same words, each with the rule that is broken if the result differs.

        More than `_ALONE` words, as for all letters of an alphabet, are read only by tables, by steps and by "auto".
        """
        layer, u, (batch, length) = self.layer, rows[index], index.shape
        is_few, cut = batch <= _ALONE, length // 2
        # Twice the same, and each word alone.
        if is_few:
            yield "`forward` is random: it gives other outputs for the same inputs", self._read(u, state)
            parts = [self._read(one, x) for one, x in zip(u.split(1), state.split(1), strict=True)]
            y, after = (torch.cat(of_words) for of_words in zip(*parts, strict=True))
            yield "`forward` gives a word other outputs in a batch than alone", (y, after)
        # Other inputs after the middle.
        if layer.is_causal and is_few:
            changed = torch.cat([u[:, :cut], rows.flip(0)[index][:, cut:]], dim=1)
            rule = "`forward` is not causal, outputs depend on later inputs: declare is_causal = False if it must be so"
            yield rule, (self._read(changed, state)[0][:, :cut], None)
        if layer.has_tables and length:
            rule = "`forward` does not compute x_k = A(u_k) x_{k-1} + v(u_k) with what `tables` returns: correct either"
            yield rule, self._by_tables(rows, index, state)
        if layer.is_causal and is_few:
            first, between = self._read(u[:, :cut], state)
            second, after = self._read(u[:, cut:], between)
            rule = "`forward` reads a word in two pieces, the state carried on, otherwise than whole"
            yield rule, (torch.cat([first, second], dim=1), after)
        if layer.is_causal and length:
            yield "`step` computes other than `forward`", self._steps(u, state)
        for method in ("auto", *layer.methods) if is_few else ("auto",):
            rule = f"`forward` computes otherwise by method {method!r}"
            with _if_offered():
                yield rule, self._read(u, state, method)
                if layer.takes_index:
                    yield f"{rule}, rows given by index", self._read(rows, state, method, index)
        for arguments in ((u, state), (rows, state, "auto", index))[: 1 + layer.takes_index] if is_few else ():
            yield "`outputs` are other than those of `forward`", (self._call("outputs", *arguments), None)

    def _check_letters(self, letters: Tensor) -> None:
        """Check tables and words of one letter each, for all letters (|Σ|, d), then longer words that start from x₀.

        If the layer declares that nothing rounds on these inputs (`is_exact`), all ways to read the words agree bit for
        bit, otherwise up to rounding.
        """
        size = max(1, min(_LETTERS, _ENTRIES // self.entries))
        for rows in letters.split(size):
            if self.layer.has_tables:
                self._check_tables(rows)
            self._check_words(rows, torch.arange(len(rows), device=rows.device)[:, None], self._states(len(rows), rows))
        rows, length = letters[:size], max(1, min(_CASES[-1][0], size // _WORDS))
        is_exact = self._call("starts_exact") and self._call("is_exact", rows, integers(FloatFormat.of(self.dtype)))
        index = self._numbers(len(rows), _WORDS, length)
        self._check_words(rows, index, self._states(_WORDS, None), 0.0 if is_exact else None)

    def _check_tables(self, rows: Tensor) -> None:
        """Check the declarations about the tables of these rows (N, d), apart from their use in `forward`."""
        layer, parts, few = self.layer, self._tables(rows), rows[:_ALONE]
        is_lookup = self._call("is_lookup", rows)
        alone = [torch.cat(of_rows) for of_rows in zip(*map(self._tables, few.split(1)), strict=True)]
        rule = "`tables` of a row depend on the other rows"
        rule += ", though is_lookup is declared" if is_lookup else ""
        for table, part in zip(alone, parts, strict=True):
            self._compare(table, part[:_ALONE], rule, 0.0 if is_lookup else None)
        with _if_offered():
            for part, bound in zip(parts, self._call("rounded_tables", RoundedNumbers.exact(rows)), strict=True):
                apart = (part.cpu().double() - bound.mid).abs()
                # An infinite bound claims nothing and passes; entries that are NaN or infinite are outside of every
                # claim.
                if not (apart <= bound.off)[part.cpu().isfinite()].all():
                    raise self.fault("`tables` lie outside of `rounded_tables`: bound all that rounding may do")
        if layer.has_maps:
            columns = one_hot(self._call("maps", rows), parts[0].shape[-1]).transpose(-1, -2)
            self._compare(columns, parts[0], "`maps` are not those of `tables`", 0.0)
            self._compare(torch.zeros_like(parts[1]), parts[1], "maps are declared, but v is not 0", 0.0)

    def _check_readout(self) -> None:
        """Check that the read-out, (…, width) -> (…, |Γ|), reads rows separately, and a gate by its formula."""
        readout, x = self.model.readout, self._normal(3, 7, self.model.config.stream_widths[-1])
        logits, shape = self._run("readout", readout, x), (3, 7, len(self.model.outputs))
        self._form("what `readout` returns", logits, shape, self.dtype)
        alone = self._run("readout", readout, x.flatten(0, 1)[:, None])
        self._compare(alone.view_as(logits), logits, "`readout` of a row depends on where it stands")
        if isinstance(readout, Gate):
            W1, b1, W2, b2 = readout.weights
            by_weights = (x @ W1.T + b1).relu() @ W2.T + b2
            self._compare(by_weights, logits, "`readout` is a Gate, but does not compute W2 relu(W1 x + b1) + b2")

    def _compare(
        self, actual: Tensor, expected: Tensor, rule: str, tolerance: float | None = None, is_sequence: bool = False
    ) -> None:
        """Raise `FalseDeclaration` with the rule if numbers differ by more than rounding explains.

        For sequences (B, T, …) the scale is the largest number up to that step, otherwise the largest of all.
        """
        if not expected.numel():
            return
        actual, expected = actual.double(), expected.double()
        size = expected.abs().nan_to_num(nan=1e300)
        if is_sequence:
            # The scale grows along a word: an early error must not hide behind large numbers at the end.
            of_step = size.transpose(0, 1).flatten(1).amax(1).cummax(0).values
            size = of_step.view(-1, *[1] * (expected.ndim - 2))
        else:
            size = size.max()
        # The tolerance is relative for numbers above 1 and absolute below.
        allowed = (self.tolerance if tolerance is None else tolerance) * size.clamp(min=1)
        apart = (actual - expected).abs()
        # `~(apart <= allowed)` is also true for NaN in `actual`.
        if (is_off := expected.isfinite() & ~(apart <= allowed)).any():
            worst = float(apart[is_off].nan_to_num(nan=torch.inf).max())
            raise self.fault(f"{rule}; the difference is {worst:.3g}, more than rounding explains")
