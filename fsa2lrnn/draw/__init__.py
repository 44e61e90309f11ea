"""Draw automata as SVG, write the page on which an automaton and its networks run letter by letter, compare models.

`automaton`, `boxes` and what they use import no automata and no torch: machines and cascades draw themselves with them.
`explorer` and `comparison` stand on the rest of the library.
"""
