"""Writes pynini_*.fst.txt and their tables with OpenFst, in an environment of its own: `pip install pynini==2.1.7`."""

from pathlib import Path

import pynini  # type: ignore[import-not-found]

HERE = Path(__file__).parent


def table(*symbols: str) -> pynini.SymbolTable:
    """Symbols in order; epsilon has number 0, as OpenFst wants."""
    result = pynini.SymbolTable()
    for symbol in ("<eps>", *symbols):
        result.add_symbol(symbol)
    return result


def build(n: int, start: int, arcs: list[tuple[int, int, int, int]], finals: list[int]) -> pynini.Fst:
    """An FST from arcs (source, input, output, target)."""
    fst = pynini.Fst()
    for _ in range(n):
        fst.add_state()
    fst.set_start(start)
    for source, i, o, target in arcs:
        fst.add_arc(source, pynini.Arc(i, o, 0, target))
    for state in finals:
        fst.set_final(state)
    return fst


# (ab)* from a regular expression, printed without symbols: letters are the bytes 97 and 98, both labels an arc.
(HERE / "pynini_bytes.fst.txt").write_text(pynini.union("ab").closure().optimize().print())

# Words that end in "one zero", nondeterministic with an epsilon, acceptor format, the start not first by number.
letters = table("zero", "one")
nfa = build(4, 2, [(2, 1, 1, 2), (2, 2, 2, 2), (2, 0, 0, 0), (0, 2, 2, 1), (1, 1, 1, 3)], [3])
(HERE / "pynini_nfa.fst.txt").write_text(nfa.print(isymbols=letters, acceptor=True))
letters.write_text(str(HERE / "pynini_nfa.syms"))

# Parity of ones as a transducer, weights shown.
outputs = table("even", "odd")
mealy = build(2, 0, [(0, 1, 1, 0), (0, 2, 2, 1), (1, 1, 2, 1), (1, 2, 1, 0)], [0, 1])
(HERE / "pynini_mealy.fst.txt").write_text(mealy.print(isymbols=letters, osymbols=outputs, show_weight_one=True))
letters.write_text(str(HERE / "pynini_mealy.isyms"))
outputs.write_text(str(HERE / "pynini_mealy.osyms"))
