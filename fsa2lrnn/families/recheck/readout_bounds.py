"""Check bounds on layers with a linear read-out: a Hankel minor, and an equation that outputs break (T66).

Outputs after prefix · suffix, as indicators, make a matrix whose rank no layer of H·b dimensions exceeds by more than
one. All combinations of states that a family forces to be zero read as zero after every word.
"""

from __future__ import annotations

from typing import Any

from .certificate_fields import HEADER, as_list, fields, require, spend
from .checked_machine import CheckedMachine, after, read_symbol, read_word
from .impossibilities import forced_zero, read_family

MODULUS = (1 << 61) - 1


def check_linear_readout(certificate: dict[str, Any], machine: CheckedMachine) -> str:
    """Return the claim of a certificate; raise `RejectedCertificate` if the minor or the equation does not prove it."""
    *_, prefixes, suffixes, equation = fields(certificate, *HEADER, "prefixes", "suffixes", "equation")
    start, family = certificate["machine"]["start"], str(certificate["family"])
    words = [read_word(word, machine) for word in as_list(prefixes)]
    require(all(any(k for _, k in word) for word in words), "a prefix is empty, whose output need not count")
    ends = [(read_symbol(y), read_word(word, machine)) for y, word in as_list(suffixes)]
    require(len(words) == len(ends) > 0, "there are not as many suffixes as prefixes")
    states = [after(start, word, machine) for word in words]
    spend(len(ends) ** 3 // 8 + len(ends) ** 2)
    matrix = [[int(machine.outputs[after(q, word, machine)] == y) for q in states] for y, word in ends]
    require(is_regular(matrix), "the Hankel minor may be singular")
    size = f"a layer with a linear read-out needs {len(words) - 1} dimensions at least"
    if equation is None:
        return f"bounded: {size}"
    source, target, words, then, separator = fields(equation, "from", "to", "words", "then", "separator")
    form = read_family("householder" if family.startswith("householder(") and "," not in family else family)
    total = forced_zero([source, target, words, then], machine, form, family)
    word = read_word(separator, machine)
    shown = dict[Any, int]()
    for q, value in enumerate(total):
        if value:
            output = machine.outputs[after(q, word, machine)]
            shown[output] = shown.get(output, 0) + value
    require(any(shown.values()), "the outputs keep the equation")
    return f"impossible: no {family} layer with a linear read-out computes this machine; {size}"


def is_regular(rows: list[list[int]]) -> bool:
    """Return whether a determinant is not 0 modulo `MODULUS`."""
    for k in range(len(rows)):
        pivot = next((i for i in range(k, len(rows)) if rows[i][k]), None)
        if pivot is None:
            return False
        rows[k], rows[pivot] = rows[pivot], rows[k]
        inverse = pow(rows[k][k], -1, MODULUS)
        for i in range(k + 1, len(rows)):
            if factor := rows[i][k] * inverse % MODULUS:
                rows[i] = [(x - factor * y) % MODULUS for x, y in zip(rows[i], rows[k], strict=True)]
    return True
