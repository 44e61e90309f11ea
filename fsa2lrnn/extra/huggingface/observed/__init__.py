"""Models of others, with any weights: where their gates live, as their own code computes them.

`read.observe` runs a model over a text or its vocabulary; what a layer's file calls `OBSERVER` says where to look.
"""
