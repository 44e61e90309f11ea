"""Check certificates of refusals independently: `python recheck.py certificate.json`. Standard library only.

A certificate names words u, w, v. It claims that no layer of a given name has the outputs of a machine, in exact
arithmetic, with states that recur. The check uses one of three arguments:

*positive*  Every transition is a product of positive semidefinite matrices of norm at most 1 (αI − αβkkᵀ with α, β in
    [0, 1], ‖k‖ ≤ 1; for mamba-2 and its siblings only α, for mamba and its
    siblings a diagonal of such numbers, for kimi-linear I − βkkᵀ times such a
    diagonal), chosen by the last few letters, and adds a vector chosen by these. If w is read repeatedly, the last
    letters repeat with w, so one map x ↦ Ax + c leads from each w to the next, A being a product of such matrices. If A
    keeps the length of a vector, each factor keeps it and hence fixes the vector: the only eigenvalue of modulus 1 is
    1. States that recur are therefore eventually the same after each w, and so are outputs after u wⁿ v. In a stack of
    such layers, without attention, the inputs of the second layer eventually repeat with w, and so on.
*symmetric*  The same with β in [0, 2]: symmetric matrices of norm at most 1. If w is one letter, A is eventually one
    such matrix, whose eigenvalues of modulus 1 are −1 and 1, and states that recur have period 1 or 2. This holds for
    one layer: the matrices of a second layer may have period 2, and the product of two of them can be a rotation.
*spectrum*  A letter's transition is diag(w) − κ(a∘κ)ᵀ with w in [exp(−0.606531), 1], a in [0, 1], ‖κ‖ ≤ 1. For a > 0
    it is similar, by the diagonal matrix √a, to diag(w) − (√a∘κ)(√a∘κ)ᵀ, which is symmetric with eigenvalues between
    0.545 − 1 and 1; transitions for other a are limits of these. If w is one letter, the map is eventually x ↦ Ax + c
    with one such A. Differences of states that recur span a space on which A has finite order, so its eigenvalues there
    are roots of unity: only 1. Hence A fixes these differences, and states that recur move by the same difference each
    time, which is 0. The inputs of the next layer are then the same after each w, and so on. Products of the
    transitions of two letters are not symmetric: no claim is made about them.

So a claim is proved if the outputs after u wⁿ v do not eventually have that period, which this file computes.
"""

from __future__ import annotations

import json
import sys
from typing import Any

FORM = ("fsa2lrnn-released-certificate", 1)
# For each argument: the period, whether w may have more than one letter, and the layers for which it holds.
ARGUMENTS = {
    "positive": (1, True, "one layer or a stack of them without attention"),
    "symmetric": (2, False, "one layer"),
    "spectrum": (1, False, "one layer or a stack of them without attention"),
}
LAYERS = {
    "olmo-hybrid": "symmetric",
    **dict.fromkeys(("qwen3-next", "kimi-linear", "bailing-hybrid", "mamba", "mamba-2"), "positive"),
    "rwkv-7": "spectrum",
}
MOST_READ = 1 << 24
"""The default bound on the number of letters that a check reads, which takes a few seconds."""
_FIELDS = {"format", "version", "layer", "argument", "machine", "before", "repeated", "after"}


class RejectedRefusal(ValueError):
    """Raised for a certificate that does not prove its claim; the message names the first fault."""


def recheck(certificate: Any, most_read: int = MOST_READ) -> str:
    """Check a certificate and return in one line the claim that it proves.

    Raises `RejectedRefusal` if it proves none, or if the check would read more than `most_read` letters.
    """
    try:
        return _recheck(certificate, most_read)
    except RejectedRefusal:
        raise
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as fault:
        raise RejectedRefusal(f"the certificate is malformed ({type(fault).__name__}: {str(fault)[:200]})") from None


def _recheck(certificate: Any, most_read: int) -> str:
    _require(isinstance(certificate, dict) and set(certificate) == _FIELDS, f"the fields are not {sorted(_FIELDS)}")
    form = certificate["format"], certificate["version"]
    _require(form == FORM and type(form[1]) is int, f"{str(form)[:80]} is not a certificate that this file can read")
    layer, argument = certificate["layer"], certificate["argument"]
    _require(layer in LAYERS, f"layer {str(layer)[:80]!r} is not known")
    _require(argument == LAYERS[layer], f"the argument {str(argument)[:80]!r} does not hold for {layer}")
    period, may_be_long, scope = ARGUMENTS[argument]
    delta, outputs, start = _machine(certificate["machine"])
    before, repeated, after = (_word(certificate[name], delta) for name in ("before", "repeated", "after"))
    _require(len(repeated) >= 1, "no word is repeated")
    _require(may_be_long or len(repeated) == 1, f"for {layer} the word that is repeated is one letter")
    place, q = dict[int, int](), _run(start, before, delta)  # the reached states, in order
    while q not in place:
        place[q] = len(place)
        to_read = len(place) * (len(repeated) + len(after))
        _require(
            to_read <= most_read,
            f"the check reads {to_read:,} letters or more, its bound is {most_read:,}: if the certificate's author is "
            "trusted, give a larger `most_read` to `recheck`",
        )
        q = _run(q, repeated, delta)
    # From the first state that recurs on, the states after u wⁿ repeat: these are all that matter in the end.
    cycle = list(place)[place[q] :]
    found = [outputs[_run(state, after, delta)] for state in cycle]
    # Indices wrap around, because the cycle repeats for ever.
    differ = any(found[i] != found[(i + period) % len(found)] for i in range(len(found)))
    _require(differ, f"the outputs have period {period} in the end, as the layer's have")
    return f"impossible: {scope} of {layer}, whose states recur, cannot put out what this machine does"


def _machine(value: Any) -> tuple[list[list[int]], list[Any], int]:
    names = {"alphabet", "delta", "outputs", "start"}
    _require(isinstance(value, dict) and set(value) == names, "the machine has other fields than a machine")
    delta: Any = value["delta"]
    _require(all(type(value[name]) is list for name in names - {"start"}), "alphabet, delta, outputs are lists")
    letters = [_symbol(letter) for letter in value["alphabet"]]
    _require(len(set(letters)) == len(letters), "a letter stands twice in the alphabet")
    outputs, start = [_symbol(output) for output in value["outputs"]], value["start"]
    n = len(outputs)
    _require(isinstance(delta, list) and len(delta) == len(value["alphabet"]) > 0 and n > 0, "no states or no letters")
    rows = all(isinstance(row, list) and len(row) == n for row in delta)
    _require(rows and all(type(q) is int and 0 <= q < n for row in delta for q in row), "delta is not a complete table")
    _require(type(start) is int and 0 <= start < n, "the start is not a state")
    return delta, outputs, start


def _symbol(value: Any) -> Any:
    if type(value) is dict and len(value) == 1:
        ((tag, items),) = value.items()
        if tag in ("tuple", "frozenset") and type(items) is list:
            return (tuple if tag == "tuple" else frozenset)(_symbol(item) for item in items)
    _require(value is None or type(value) in (str, int, float, bool), "a letter or an output is not a symbol")
    _require(value == value, "a letter or an output is not equal to itself")
    # Hashes of longer integers are known in advance, so that sets of them could be made to take quadratic time.
    is_short = type(value) is not int or value.bit_length() < 64
    _require(is_short, "an integer that is a letter or an output has 64 bits or more: write it as a text")
    return value


def _word(value: Any, delta: list[list[int]]) -> list[int]:
    _require(type(value) is list, "a word is not a list")
    _require(
        all(type(a) is int and 0 <= a < len(delta) for a in value), "a word has a letter that is none of the machine's"
    )
    return value


def _run(q: int, word: list[int], delta: list[list[int]]) -> int:
    for a in word:
        q = delta[a][q]
    return q


def _require(condition: bool, fault: str) -> None:
    if not condition:
        raise RejectedRefusal(fault)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    _require(len(dict(pairs)) == len(pairs), "a field stands twice in one object")
    return dict(pairs)


def main(arguments: list[str]) -> str:
    """Return the claim that the certificate in a file proves; raise `SystemExit` with the reason if it proves none."""
    if len(arguments) != 1:
        sys.exit("usage: python recheck.py certificate.json")
    try:
        with open(arguments[0], encoding="utf-8") as file:  # noqa: PTH123 - this file stands alone
            return recheck(json.load(file, object_pairs_hook=_object))
    except (OSError, RecursionError, ValueError) as fault:
        sys.exit(f"rejected: {fault}")


if __name__ == "__main__":
    print(main(sys.argv[1:]))
