"""The command: whether a certificate holds for a model and an automaton in files."""

import sys
from collections.abc import Hashable
from pathlib import Path

import numpy as np

from .errors import InvalidCertificate, UnsupportedInput
from .files import Automaton, read_automaton, read_certificate
from .model_file import read_tables
from .nodes import CountedAutomaton
from .proof import check_sets
from .rounding import Slack

USAGE = "usage: python -m fsa2lrnn.checker CERTIFICATE.json MODEL.safetensors MACHINE.json"


def main(arguments: list[str]) -> int:
    """Print what is proved, or what fails; return 0 for a valid certificate, 1 for another, 2 for bad input."""
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
    """What the certificate proves, in a line. Raises `InvalidCertificate` or `UnsupportedInput`."""
    certificate, machine = read_certificate(certificate_file), read_automaton(machine_file)
    tables = read_tables(model_file)
    for name, of_model in (("sha256", tables.sha256), ("dtype", tables.dtype)):
        if (claimed := getattr(certificate, name)) != of_model:
            raise InvalidCertificate(f"it is of a model with {name} {claimed[:80]}, this one has {of_model}")
    if (word := difference(certificate.machine, machine)) is not None:
        raise InvalidCertificate(f"it is of another machine: they differ after the word {list(word)!r:.200}")
    if unknown := set(certificate.ignore) & set(tables.outputs):
        raise InvalidCertificate(f"it claims less: the outputs {sorted(map(repr, unknown))[:8]} do not count in it")
    target = target_of(certificate.machine, tables.alphabet, tables.outputs, certificate.ignore)
    check_sets(certificate.claim, tables, target, Slack(certificate.slack, certificate.slack))
    horizon = certificate.claim.horizon
    length = "any length" if horizon is None else f"at most {horizon:,} letters"
    lacked = f", where the outputs {certificate.ignore!r:.200} do not count" if certificate.ignore else ""
    return f"the model gives the machine's output after each letter of every word of {length}{lacked}"


def target_of(
    machine: Automaton, alphabet: tuple[Hashable, ...], outputs: tuple[Hashable, ...], ignored: tuple[Hashable, ...]
) -> CountedAutomaton:
    """The automaton in a model's numbers. Raises `UnsupportedInput` for unlike alphabets, or if nothing counts."""
    if set(machine.alphabet) != set(alphabet) or len(alphabet) != len(set(alphabet)):
        raise UnsupportedInput(f"the model reads {alphabet!r:.200}, the machine {machine.alphabet!r:.200}")
    row = {letter: a for a, letter in enumerate(machine.alphabet)}
    number = {output: j for j, output in enumerate(outputs)}
    expected = np.array([number.get(output, len(outputs)) for output in machine.outputs], np.int64)
    dropped = set(ignored)
    counts = np.array([output not in dropped for output in machine.outputs])
    if not counts.any():
        raise UnsupportedInput("no output of the machine counts: there is nothing to check")
    return CountedAutomaton(
        machine.delta[[row[letter] for letter in alphabet]], machine.start, expected, counts, len(outputs)
    )


def difference(first: Automaton, second: Automaton) -> tuple[Hashable, ...] | None:
    """A word after which two automata give unlike outputs, None if there is none (Hopcroft and Karp, 1971).

    States that were found to be alike are joined, so that as many pairs are looked at as there are states.
    """
    if set(first.alphabet) != set(second.alphabet):
        raise InvalidCertificate(f"it is for the letters {first.alphabet!r:.200}, not {second.alphabet!r:.200}")
    n, place = len(first.outputs), {letter: a for a, letter in enumerate(second.alphabet)}
    steps = [
        (letter, first.delta[a].tolist(), second.delta[place[letter]].tolist())
        for a, letter in enumerate(first.alphabet)
    ]
    parent = list(range(n + len(second.outputs)))

    def root(q: int) -> int:
        while parent[q] != q:
            parent[q] = q = parent[parent[q]]
        return q

    waiting = [(first.start, second.start, ())]
    while waiting:
        p, q, word = waiting.pop()
        letters: list[Hashable] = []
        if first.outputs[p] != second.outputs[q]:
            while word:
                word, letter = word
                letters.append(letter)
            return tuple(reversed(letters))
        if (a := root(p)) != (b := root(n + q)):
            parent[a] = b
            waiting += [(of_p[p], of_q[q], (word, letter)) for letter, of_p, of_q in steps]
    return None
