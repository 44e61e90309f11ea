"""Make `automata_lib_*.dot` with automata-lib's own drawing: needs `automata-lib`, `coloraide` and `pygraphviz`."""

from pathlib import Path

from automata.fa.dfa import DFA
from automata.fa.nfa import NFA

HERE = Path(__file__).parent

if __name__ == "__main__":
    DFA.from_finite_language({"a", "b"}, {"ab", "ba", "aab"}).show_diagram(path=HERE / "automata_lib_dfa.dot")
    NFA.from_regex("(ab)*|a+b?").show_diagram(path=HERE / "automata_lib_nfa.dot")
