"""Observation of external models with any weights: the values of their gates, as their own code computes them.

`read.observe` runs a model over a text or its vocabulary; `OBSERVER` in a layer's file defines where the gates are
read.
"""
