"""Repair of trained models: the least change after which they implement an exact image of their machine (L6, §8)."""

from fsa2lrnn.repairing.least_change import Change, Mode, Repaired, RepairedHead, repair

__all__ = ["Change", "Mode", "Repaired", "RepairedHead", "repair"]
