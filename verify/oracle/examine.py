"""Compare what certificates and proofs claim about a small model with its exact network and its float runs.

- Outputs: the model's outputs, by each scan, batch and shape of call that a verdict covers, are the machine's.
- Margins: no claimed margin exceeds the exact margin of a word, nor that of the logits as computed.
- Sets: the sets that a certificate stores hold the exact states, and the states as computed.
- Tables: exact tables, and those computed in several ways, lie within the tolerance that a proof by sets assumes.

All words of up to 12 letters are evaluated, as far as `MOST_WORDS` allow; then, at each length, those that seem worst.
"""

# pyright: basic
from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from flint import arb, arb_mat  # pyright: ignore[reportMissingTypeStubs]
from torch import Tensor

from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.checker.rounding import FloatFormat
from fsa2lrnn.errors import Fsa2LrnnError, NotExact, UnsupportedFormat
from fsa2lrnn.nn import LRNN
from fsa2lrnn.nn.switched import switched
from fsa2lrnn.verdicts import EVERY, Coverage, Proved
from fsa2lrnn.verification.certificate import Certificate, slack_of
from fsa2lrnn.verification.certify import certify
from fsa2lrnn.verification.check import check
from fsa2lrnn.verification.equivalence import prove_equivalent
from verify.oracle.exact import ExactNetwork, State, Undecided
from verify.oracle.models import drawn

ALL, LONGEST = 12, 40
"""Up to the first length all words are evaluated, up to the second the worst ones."""
MOST_WORDS, BEAM = 2500, 24
_RUN = 512  # words that are run
_WORK = {"auto": 3e5, "joint sets": 2e7}
_PROVED = 300  # joint states


class Word(NamedTuple):
    """A word with the machine's state and the exact network's, and its logits."""

    letters: tuple[int, ...]
    q: int
    state: State
    logits: list[Any]


class Target(NamedTuple):
    """A machine as plain tables; `outputs` numbers them as the model does."""

    delta: list[list[int]]
    outputs: list[int]
    start: int

    @classmethod
    def of(cls, machine: MooreMachine, model: LRNN) -> Target:
        """Return the tables of a machine; an output that the model lacks is −1."""
        order = [machine.alphabet.index(letter) for letter in model.alphabet]
        numbers = [model.outputs.index(y) if y in model.outputs else -1 for y in machine.outputs]
        return cls(np.asarray(machine.delta)[order].tolist(), numbers, machine.start)

    def expected(self, word: tuple[int, ...]) -> list[int]:
        """Return the output after each letter."""
        q, outputs = self.start, list[int]()
        for letter in word:
            q = self.delta[letter][q]
            outputs.append(self.outputs[q])
        return outputs


def examine(seed: int) -> Counter[str]:
    """Examine the model of a seed; return counts, of which those of "wrong: …" must be zero."""
    try:
        model, machine = drawn(seed)
    except NotExact:
        return Counter({"models": 1, "models with NaN": 1})
    return examine_model(model, machine, seed)


@torch.no_grad()
def examine_model(
    model: LRNN, machine: MooreMachine, seed: int, methods: tuple[str, ...] = tuple(_WORK)
) -> Counter[str]:
    """Examine one model with the machine that verdicts are asked about."""
    counts = Counter[str](models=1)
    certificates, claims = list[Certificate](), list[tuple[int, Coverage]]()
    for method in methods:
        try:
            certificate = certify(model, machine, work=_WORK[method], method=method)
            accepted = check(certificate, model)
        except UnsupportedFormat:
            counts[f"refused: {method}"] += 1
            continue
        if certificate.horizon == 0:
            counts[f"no letter certified: {method}"] += 1
            continue
        counts[f"certified by {certificate.method}"] += 1
        certificates.append(certificate)
        claims.append((_length(accepted.horizon), accepted.covers))
    try:
        verdict = prove_equivalent(model, machine, _PROVED)
        if isinstance(verdict, Proved):
            counts["proved"] += 1
            claims.append((LONGEST, verdict.covers))
    except Fsa2LrnnError:
        counts["refused: prove_equivalent"] += 1
    if not claims:
        counts["models without a claim"] += 1
        return counts
    counts[f"models with a claim, {str(model.dtype).removeprefix('torch.')}, {model.config.normalisation}"] += 1
    target = Target.of(machine, model)
    levels = _levels(model, target, max(length for length, _ in claims), seed, counts)
    _check_outputs(model, target, claims, levels, seed, counts)
    for certificate in certificates:
        if certificate.method != "enumeration":
            _check_margins(model, certificate, levels, target, counts)
        if certificate.method == "sets":
            _check_sets(model, certificate, levels, counts)
            _check_tables(model, counts)
    return counts


def _length(horizon: int | None) -> int:
    return LONGEST if horizon is None else min(horizon, LONGEST)


def _levels(model: LRNN, target: Target, longest: int, seed: int, counts: Counter[str]) -> list[list[Word]]:
    """Return the words of each length, with exact states; none beyond a length where the network is not defined."""
    rng = np.random.default_rng(seed)
    try:
        network = ExactNetwork(model)
        levels = [[Word((), target.start, network.start(), [])]]
        for length in range(1, longest + 1):
            words = levels[-1]
            room = MOST_WORDS if length <= ALL else BEAM * network.n_letters
            if len(words) * network.n_letters > room:
                words = _worst(words, target, rng)
            after = list[Word]()
            for word, letter in itertools.product(words, range(network.n_letters)):
                state, logits = network.step(word.state, letter)
                after.append(Word((*word.letters, letter), target.delta[letter][word.q], state, logits))
            counts["words evaluated exactly"] += len(after)
            levels.append(after)
    except Undecided:
        counts["exact network not decided"] += 1
        levels = levels if "levels" in locals() else []
    return levels


def _worst(words: list[Word], target: Target, rng: np.random.Generator) -> list[Word]:
    """Return words with the least margins, and extreme ones in random directions among those of each state."""
    by_margin = sorted(words, key=lambda word: _float(_margin(word.logits, target.outputs[word.q])))
    chosen = by_margin[: BEAM // 3]
    x = np.array([[_float(z) for layer in word.state.x for row in layer for z in row] for word in words])
    q = np.array([word.q for word in words])
    while len(chosen) < BEAM:
        some = np.flatnonzero(q == rng.choice(q))
        with np.errstate(all="ignore"):
            along = np.nan_to_num((x[some] - x[some].mean(0)) @ rng.normal(size=x.shape[1]))
        chosen.append(words[some[int(along.argmax())]])
    return list({word.letters: word for word in chosen}.values())


def _float(z: Any) -> float:
    return float(z.mid())


def _margin(logits: list[Any], expected: int) -> Any:
    """Return the expected logit less the largest other one, a ball."""
    rivals = [logits[expected] - z for j, z in enumerate(logits) if j != expected]
    if not rivals:
        return arb("inf")
    least = rivals[0]
    for z in rivals[1:]:
        least = least if least <= z else z if z <= least else (least + z - abs(least - z)) / 2
    return least


def _check_outputs(
    model: LRNN,
    target: Target,
    claims: list[tuple[int, Coverage]],
    levels: list[list[Word]],
    seed: int,
    counts: Counter[str],
) -> None:
    """Run words in the ways that the verdicts cover, and count outputs that are not the machine's."""
    rng = np.random.default_rng(seed)
    for length, covers in claims:
        at = min(length, len(levels) - 1)
        tokens = [word.letters for word in levels[at]] if at > 0 else []
        tokens = [tokens[i] for i in rng.permutation(len(tokens))[:_RUN]]
        tokens = [(*word, *map(int, rng.integers(0, len(model.alphabet), length - at))) for word in tokens]
        if length <= ALL:
            tokens += [tuple(map(int, row)) for row in rng.integers(0, len(model.alphabet), (64, length))]
        tokens = tokens or [tuple(map(int, row)) for row in rng.integers(0, len(model.alphabet), (64, length))]
        expected = np.array([target.expected(word) for word in tokens])
        for logits in _runs(model, torch.tensor(tokens), covers):
            n = len(logits)
            is_wrong = (logits.argmax(-1) != expected[:n]) | np.isnan(logits).any(-1)
            counts["positions run"] += is_wrong.size
            counts["wrong: outputs"] += int(is_wrong.sum())


def _runs(model: LRNN, tokens: Tensor, covers: Coverage) -> Iterator[np.ndarray]:
    """Yield the logits of the first words, as computed in each way that a verdict covers."""
    with _threads(covers.threads or 1):
        yield torch.cat([_singly(model, word[None]) for word in tokens[:8]]).double().numpy()
        if covers.shapes != EVERY:
            return
        for scan in dict.fromkeys(("auto", *covers.scans)):
            yield model(tokens, scan).double().numpy()
            yield torch.cat([model(part, scan) for part in tokens[:9].split(3)]).double().numpy()
            yield torch.cat([model(word[None], scan) for word in tokens[:4]]).double().numpy()
        yield _singly(model, tokens).double().numpy()
    with _threads(2):
        yield model(tokens).double().numpy()


def _singly(model: LRNN, tokens: Tensor) -> Tensor:
    state, logits = model.initial_state(len(tokens)), list[Tensor]()
    for k in range(tokens.shape[1]):
        after, state = model.advance(tokens[:, k : k + 1], state)
        logits.append(after)
    return torch.cat(logits, 1)


class _threads:  # noqa: N801 - a context manager
    def __init__(self, count: int) -> None:
        self._count = count

    def __enter__(self) -> None:
        self._before = torch.get_num_threads()
        torch.set_num_threads(self._count)

    def __exit__(self, *_: object) -> None:
        torch.set_num_threads(self._before)


def _check_margins(
    model: LRNN, certificate: Certificate, levels: list[list[Word]], target: Target, counts: Counter[str]
) -> None:
    """Compare the claimed margin of each length with that of exact words and of computed logits."""
    longest = min(_length(certificate.horizon), len(levels) - 1)
    if longest < 1:
        return
    claimed = [
        float(certificate.margins[min(length, len(certificate.margins)) - 1]) for length in range(1, longest + 1)
    ]
    for length, claim in enumerate(claimed, 1):
        for word in levels[length]:
            counts["exact margins compared"] += 1
            if _margin(word.logits, target.outputs[word.q]) < arb(claim):
                counts["wrong: exact margin below the claim"] += 1
    tokens = [word.letters for word in levels[longest][:_RUN]]
    expected = np.array([target.expected(word) for word in tokens])[..., None]
    for scan in certificate.scans:
        logits = model(torch.tensor(tokens), scan).double().numpy()
        own = np.take_along_axis(logits, expected, -1)
        np.put_along_axis(logits, expected, -np.inf, -1)
        with np.errstate(invalid="ignore"):
            is_wrong = ~((own[..., 0] - logits.max(-1)) * (1 + 1e-9) >= np.array(claimed))
        counts["wrong: computed margin below the claim"] += int(is_wrong.sum())


def _check_tables(model: LRNN, counts: Counter[str]) -> None:
    """Compare exact tables, and those of other calls, with the tolerance about the tables of the proof."""
    tables, slack = switched(model), slack_of(model)
    network, layer, u = ExactNetwork(model), model.recurrences[0], model.first_inputs()
    for part, numbers, allowed in (("A", tables.A, slack.A), ("v", tables.v, slack.v)):
        middle = numbers.double().numpy()
        allowed = np.broadcast_to(np.asarray(allowed, np.float64), middle.shape)
        others = [layer.tables(u, "reference"), *(layer.tables(u.repeat(k, 1), "auto") for k in (3, 40))]
        others.append(tuple(torch.cat(each) for each in zip(*(layer.tables(row[None]) for row in u), strict=True)))  # pyright: ignore
        for other in others:
            computed = other["Av".index(part)][: len(middle)].double().numpy()
            counts["wrong: computed tables"] += int((~(np.abs(computed - middle) <= allowed)).sum())
        # A gate that looks its table up computes one product for each entry, rounded alike in every call: the proof is
        # about that number, which is one rounding from the exact product.
        if any(gate.is_lookup(u) for _, gate in layer.gates):
            kind = FloatFormat.of(model.dtype)
            allowed = allowed + kind.u * np.abs(middle) * (1 + 2 * kind.u) + kind.tiny * kind.u
        for a in range(len(middle)):
            A, v = network.letter_tables(a)
            exact = [z for block in A for z in block.entries()] if part == "A" else [z for row in v for z in row]
            for z, mid, off in zip(exact, middle[a].flat, allowed[a].flat, strict=True):
                counts["exact table entries compared"] += 1
                counts["wrong: exact tables"] += bool(abs(z - arb(float(mid))) > arb(float(off)) * (1 + arb(2) ** -40))


def _check_sets(model: LRNN, certificate: Certificate, levels: list[list[Word]], counts: Counter[str]) -> None:
    """Look for states outside of the sets that a certificate stores, exact ones and computed ones."""
    tube, machine = certificate.tube, certificate.machine
    assert tube is not None
    target = Target.of(machine, model)
    pairs = _pairs(target, len(model.alphabet), tube.frame_memory)
    stated = [(sets, 0.0, None) for sets in tube.stored]
    for ramp in tube.tail:
        last = LONGEST if ramp.steps is None else ramp.sets.length + ramp.steps
        for length in range(ramp.sets.length, min(last, LONGEST) + 1):
            stated.append((ramp.sets, float(length - ramp.sets.length), ramp))  # noqa: PERF401 # pyright: ignore
    for sets, steps, ramp in stated:
        length = sets.length + int(steps)
        if not 0 < length < len(levels):
            continue
        words = levels[length]
        scan = certificate.scans[length % len(certificate.scans)]
        tokens = torch.tensor([word.letters for word in words])
        computed = model.advance(tokens, model.initial_state(len(tokens)), scan)[1][0].x.double().tolist()
        radius, ball = sets.radius, sets.ball
        if ramp is not None:
            radius, ball = radius + steps * ramp.radius, ball + steps * ramp.ball
        for word, state in zip(words, computed, strict=True):
            f, j = _place(target, word.letters, tube.memory, tube.frame_memory, len(model.alphabet), pairs)
            q = target.delta[0][0] if False else _state(target, word.letters)
            for name, x in (("exact", word.state.x[0]), ("computed", [[arb(z) for z in row] for row in state])):
                counts["states compared with sets"] += 1
                if not sets.alive[f, j] or _is_outside(x, tube, sets, radius, ball, f, j, q, ramp is None):
                    counts[f"wrong: {name} state outside of a set"] += 1


def _state(target: Target, letters: tuple[int, ...]) -> int:
    q = target.start
    for letter in letters:
        q = target.delta[letter][q]
    return q


def _pairs(target: Target, n_letters: int, r: int) -> dict[tuple[int, int], int]:
    """Return the number of each pair of a state and the last r letters that some word reaches."""
    base, reached, frontier = n_letters**r, set[tuple[int, int]](), list[tuple[int, int]]()
    for word in itertools.product(range(n_letters), repeat=r):
        frontier.append((_state(target, word), _code(word, n_letters)))
    while frontier:
        q, code = frontier.pop()
        if (q, code) not in reached:
            reached.add((q, code))
            frontier += [(target.delta[a][q], (code * n_letters + a) % base) for a in range(n_letters)]
    return {pair: f for f, pair in enumerate(sorted(reached))}


def _code(word: tuple[int, ...], n_letters: int) -> int:
    code = 0
    for letter in word:
        code = code * n_letters + letter
    return code


def _place(
    target: Target, letters: tuple[int, ...], m: int, r: int, n_letters: int, pairs: dict[tuple[int, int], int]
) -> tuple[int, int]:
    last = letters[len(letters) - min(m, len(letters)) :]
    newest = last[len(last) - r :]
    return pairs[_state(target, letters), _code(newest, n_letters)], _code(last[: len(last) - r], n_letters)


def _is_outside(
    x: list[list[Any]], tube: Any, sets: Any, radius: Any, ball: Any, f: int, j: int, q: int, has_directions: bool
) -> bool:
    """Decide whether a state lies outside of a set for certain; `checker.claims.Sets` describes the arrays."""
    H, b = tube.slow.shape[1:]
    coordinates = list[list[Any]]()
    for h in range(H):
        T = arb_mat(b, b, [arb(float(z)) for z in tube.basis[f, h].flat])
        w = list(T.solve(arb_mat(b, 1, x[h])).entries())
        coordinates.append(w)
        squares = arb(0)
        for i, z in enumerate(w):
            off = z - arb(float(sets.centre[f, h, i, j]))
            if not tube.slow[f, h, i]:
                squares += off * off
            elif abs(off) > _up(radius[f, h, i, j]):
                return True
        if squares > _up(ball[f, h, j]) ** 2:
            return True
    if has_directions:
        for d in range(tube.directions.shape[1]):
            along = arb(0)
            for h, i in itertools.product(range(H), range(b)):
                if tube.slow[f, h, i]:
                    along += arb(float(tube.directions[tube.part[q], d, h, i])) * coordinates[h][i]
            if along > arb(float(sets.upper[f, d, j])) or along < arb(float(sets.lower[f, d, j])):
                return True
    return False


def _up(z: Any) -> Any:
    return arb(float(z)) * (1 + arb(2) ** -45)  # a tail's radii grow in float64
