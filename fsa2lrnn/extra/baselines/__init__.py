"""Layers of the field as baselines: S4, S4D, S5, LRU, Liquid-S4, RWKV-4 and a plain linear RNN."""
