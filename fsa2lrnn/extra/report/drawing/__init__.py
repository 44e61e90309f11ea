"""Draw automata as SVG and PNG, from plain data and independently of networks."""
