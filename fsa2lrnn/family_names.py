"""The names of the families of layers, which layers declare and `fsa2lrnn.families` decides."""

from __future__ import annotations

import re

DESCRIPTIONS = {
    "lti": "input-independent, dense A: S4 and any linear time-invariant layer",
    "lti-diagonalisable": "input-independent, diagonalisable A: S4D, S5, LRU",
    "diagonal[0,1]": "input-dependent diagonal A with entries in [0, 1]: Mamba, RWKV",
    "diagonal[-1,1]": "input-dependent diagonal A with entries in [-1, 1]",
    "diagonal-complex": "input-dependent diagonal A with complex entries",
    "liquid-s4-diagonal": "A + diag(Bu) with diagonal A and Bu added: Liquid-S4",
    "liquid-s4": "A + diag(Bu) with dense A and Bu added: Liquid-S4",
    "householder": "products of factors I - beta k k^T: DeltaNet, DeltaProduct; householder(2): at most 2 per letter",
    "block(8)": "input-dependent blocks of size 8 with real entries, any size in brackets",
}
"""The families, with the form of A in each; the sizes in brackets are examples."""
BLOCK = re.compile(r"block\(([1-9][0-9]{0,8})\)")
FACTORS = re.compile(r"householder\(([1-9][0-9]{0,8})\)")


def is_family(name: object) -> bool:
    """Return whether a value is the name of a family; `block` and `householder` take any size in brackets.

    >>> is_family("diagonal[0,1]"), is_family("block(3)"), is_family("diag")
    (True, True, False)
    """
    return isinstance(name, str) and bool(name in DESCRIPTIONS or BLOCK.fullmatch(name) or FACTORS.fullmatch(name))
