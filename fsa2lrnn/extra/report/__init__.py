"""Write reports on models of one machine, the explorer, charts, and drawings of automata."""
