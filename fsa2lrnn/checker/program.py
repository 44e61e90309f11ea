"""The command: check a certificate for a model and an automaton in files."""

import sys
from collections.abc import Hashable
from pathlib import Path

import numpy as np

from .claims import CountedAutomaton
from .errors import InvalidCertificate, UnsupportedInput, demand, require
from .files import Automaton, read_automaton, read_certificate, read_tables
from .pairs import check_pairs, read_pairs
from .proof import check_sets
from .rounding import Slack

USAGE = "usage: python -m fsa2lrnn.checker CERTIFICATE MODEL.safetensors MACHINE.json"


def main(arguments: list[str]) -> int:
    """Print the proved claim, or the failing step; return 0 for a valid certificate, 1 for others, 2 for bad input."""
    if len(arguments) != 3:
        print(USAGE, file=sys.stderr)
        return 2
    try:
        print(f"valid: {proved(*map(Path, arguments))}")
    except InvalidCertificate as error:
        print(f"not valid: {error}")
        return 1
    except UnsupportedInput as error:
        print(f"bad input: {error}", file=sys.stderr)
        return 2
    return 0


def proved(certificate_file: Path, model_file: Path, machine_file: Path) -> str:
    """Return one line that states what a certificate proves. Raises `InvalidCertificate` or `UnsupportedInput`."""
    is_pairs = certificate_file.suffix == ".safetensors"
    certificate = read_pairs(certificate_file) if is_pairs else read_certificate(certificate_file)
    machine, tables, claim = read_automaton(machine_file), read_tables(model_file), certificate.claim
    for name, of_model in (("sha256", tables.sha256), ("dtype", tables.dtype)):
        claimed = getattr(certificate, name)
        demand(claimed == of_model, f"it is of a model with {name} {claimed[:80]}, this one has {of_model}")
    word = difference(certificate.machine, machine)
    demand(word is None, f"it is of another machine: they differ after the word {list(word or ())!r:.200}")
    ignored = sorted(map(repr, set(certificate.ignore) & set(tables.outputs)))
    demand(not ignored, f"it claims less: the outputs {ignored[:8]} do not count in it")
    target = target_of(certificate.machine, tables.alphabet, tables.outputs, certificate.ignore)
    if is_pairs:
        check_pairs(claim, tables, target)
        length = "any length, the empty one too" if claim.empty_word else "any length"
    else:
        check_sets(claim, tables, target, Slack(certificate.slack, certificate.slack))
        length = "any length" if claim.horizon is None else f"at most {claim.horizon:,} letters"
    lacked = f", where the outputs {certificate.ignore!r:.200} do not count" if certificate.ignore else ""
    return f"the model gives the machine's output after each letter of every word of {length}{lacked}"


def target_of(
    machine: Automaton, alphabet: tuple[Hashable, ...], outputs: tuple[Hashable, ...], ignored: tuple[Hashable, ...]
) -> CountedAutomaton:
    """Return the automaton in a model's numbers. Raises `UnsupportedInput` for other letters or if no output counts."""
    is_same = set(machine.alphabet) == set(alphabet) and len(alphabet) == len(set(alphabet))
    require(is_same, f"the model reads {alphabet!r:.200}, the machine {machine.alphabet!r:.200}")
    row = {letter: a for a, letter in enumerate(machine.alphabet)}
    number = {output: j for j, output in enumerate(outputs)}
    # Outputs that the model lacks share one number beyond those of the model.
    expected = np.array([number.get(output, len(outputs)) for output in machine.outputs], np.int64)
    dropped = set(ignored)
    counts = np.array([output not in dropped for output in machine.outputs])
    require(bool(counts.any()), "no output of the machine counts: there is nothing to check")
    delta = machine.delta[[row[letter] for letter in alphabet]]
    return CountedAutomaton(delta, machine.start, expected, counts, len(outputs))


def difference(first: Automaton, second: Automaton) -> tuple[Hashable, ...] | None:
    """Return a word after which two automata give different outputs, None if they are equivalent.

    Equivalent states are merged: the time is nearly linear (Hopcroft and Karp, 1971).
    """
    letters = set(first.alphabet) == set(second.alphabet)
    demand(letters, f"it is for the letters {first.alphabet!r:.200}, not {second.alphabet!r:.200}")
    row, outputs = {letter: a for a, letter in enumerate(second.alphabet)}, first.outputs + second.outputs
    n, delta = len(first.outputs), second.delta[[row[letter] for letter in first.alphabet]]
    successors = np.concatenate([first.delta, n + delta], 1).T.tolist()
    parent = list(range(len(outputs)))

    def root(q: int) -> int:
        while parent[q] != q:
            # Path halving keeps the trees of the union-find shallow.
            parent[q] = q = parent[parent[q]]
        return q

    waiting = [(first.start, n + second.start, ())]  # pairs to compare, each with the linked list of its word
    while waiting:
        p, q, word = waiting.pop()
        if outputs[p] != outputs[q]:
            path: list[Hashable] = []
            while word:
                word, letter = word
                path.append(letter)
            return tuple(reversed(path))
        if (a := root(p)) != (b := root(q)):
            parent[a] = b
            pairs = zip(successors[p], successors[q], first.alphabet, strict=True)
            waiting += [(after_p, after_q, (word, letter)) for after_p, after_q, letter in pairs]
    return None
