"""Observe the gates of external models with any weights, as their own code computes them.

`read.observe` runs a model over a text or its vocabulary; `OBSERVER` in a layer's file defines how gates are read.
"""
