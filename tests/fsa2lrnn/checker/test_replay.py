"""Replays: lengths in order, stored sets in place of those found, tails that begin where sets end."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from fsa2lrnn.checker.errors import InvalidCertificate
from fsa2lrnn.checker.replay import TubeReplay, grown
from fsa2lrnn.checker.rounding import Slack
from fsa2lrnn.verification.certify import certify
from fsa2lrnn.verification.plain import plain
from fsa2lrnn.verification.specification import specification_of


def test_stored_sets_take_the_place_of_those_found(drifting):
    machine, tables = drifting
    tube = certify(tables, machine, 1).tube
    goal = specification_of(tables, machine)
    kept = tube.stored[0]
    wide = replace(kept, radius=2 * kept.radius, ball=2 * kept.ball)
    wide = replace(wide, lower=kept.lower - 1, upper=kept.upper + 1)
    narrow, wider = (
        TubeReplay(plain(tables), goal.target, replace(tube, stored=stored), Slack()) for stored in ((), (wide,))
    )
    for (before, a), (after, b) in itertools.islice(zip(narrow.lengths(), wider.lengths(), strict=True), kept.length):
        if a is not None and a.length == kept.length:
            assert after < before
            assert b is wide
        else:
            assert after == before


def test_a_tail_that_grows_holds_less_down_and_more_up(forgetful):
    machine, tables = forgetful
    (ramp,) = certify(tables, machine, 1).tube.tail
    ramp = replace(ramp, radius=0.1 * ramp.sets.radius, ball=0.1 * ramp.sets.ball, steps=10)
    exact = ramp.sets.ball + 3 * ramp.ball
    assert (grown(ramp, 3).ball > exact).all()
    assert (grown(ramp, 3, down=True).ball < exact).all()
    assert grown(ramp, 3).length == ramp.sets.length + 3
    assert grown(ramp, 0) is ramp.sets


def test_nodes_that_sets_lack_are_missed(forgetful):
    machine, tables = forgetful
    tube = certify(tables, machine, 1).tube
    replay = TubeReplay(plain(tables), specification_of(tables, machine).target, tube, Slack())
    sets = tube.tail[0].sets
    with pytest.raises(InvalidCertificate, match="these lack a node"):
        replay.check_holds(replace(sets, alive=np.zeros_like(sets.alive)), sets, "these")
