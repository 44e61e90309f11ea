"""Repair of trained models: the least change after which they implement an exact image of their machine (L6, §8)."""

from fsa2lrnn.repairing.least_change import repair, snap
from fsa2lrnn.repairing.repaired import Change, Columns, Mode, Repaired, RepairedHead

__all__ = ["Change", "Columns", "Mode", "Repaired", "RepairedHead", "repair", "snap"]
