import xml.etree.ElementTree as ET

from fsa2lrnn import decompose, zoo
from fsa2lrnn.extra.report.drawing.boxes import boxes
from fsa2lrnn.extra.report.drawing.curves import Box
from fsa2lrnn.extra.report.drawing.layout import overlap


def rects(svg):
    found: list[Box] = []
    for part in ET.fromstring(svg).iter():
        if part.tag.endswith("rect") and "node" in part.get("class"):
            x, y, width, height = (float(part.get(name)) for name in ("x", "y", "width", "height"))
            found.append((x, y, x + width, y + height))
    return found


def test_rows_go_up_and_boxes_keep_apart():
    svg = boxes("t", [["a"], ["b", "<long & longer>"], ["c"], ["d"]], [0, 0, 1, 2], [(0, 2), (2, 3), (1, 3)], [3])
    found = rects(svg)
    assert not any(overlap(a, b) for i, a in enumerate(found) for b in found[:i])
    assert found[0][1] == found[1][1] > found[2][1] > found[3][1]
    assert svg.count('class="edge"') == 3
    assert svg.count('class="node"') == 1
    assert svg.count('class="node plain"') == 3
    size = [float(x) for x in ET.fromstring(svg).get("viewBox").split()]
    assert all(box[0] > 0 and box[1] > 0 and box[2] < size[2] and box[3] < size[3] for box in found)


def test_cascades_in_a_notebook():
    found = decompose(zoo.mod_arith(5))
    svg = found.cascade._repr_svg_()
    assert svg == found._repr_svg_()
    assert len(rects(svg)) == len(found.cascade.components)
    assert svg.count('class="edge"') == sum(len(component.reads) for component in found.cascade.components)
