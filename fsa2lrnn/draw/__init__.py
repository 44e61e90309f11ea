"""Draw automata as SVG, and write the page on which an automaton and its networks run letter by letter."""
