from itertools import combinations

from fsa2lrnn.extra.report.drawing.curves import along, arc
from fsa2lrnn.extra.report.drawing.layout import HEIGHT, LabelRequest, overlap, place


def boxes(found, wanted):
    width = {label.key: label.width for label in wanted}
    return [(x - width[k] / 2, y - HEIGHT / 2, x + width[k] / 2, y + HEIGHT / 2) for k, (x, y) in found.items()]


def test_labels_of_a_bundle_of_arrows_keep_apart_and_off_what_is_taken():
    curves = {(0, i): arc((0, 0), (200, 14.0 * i), 0.05, 10) for i in range(6)}
    wanted = [LabelRequest(key, 30, along(curve)) for key, curve in curves.items()]
    taken = [(-12.0, -12.0, 12.0, 12.0), (90.0, 0.0, 110.0, 60.0)]
    found = place(wanted, taken)
    assert len(found) == 6
    assert not any(overlap(a, b) for a, b in combinations([*boxes(found, wanted), *taken], 2))


def test_where_nothing_is_free_there_is_no_label():
    wanted = [LabelRequest((0, 1), 30, [(0, 0), (50, 0), (100, 0)])]
    assert place(wanted, [(-100, -100, 300, 300)]) == {}
    assert place(wanted, [(0, -30, 100, 0)])[0, 1][1] > 0
