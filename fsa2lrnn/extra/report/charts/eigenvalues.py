"""Eigenvalues of the transition blocks in the complex plane, and how far from the unit circle they lie."""

from __future__ import annotations

from fsa2lrnn.display.markup import Markup, line, picture, tag, text
from fsa2lrnn.extra.report.charts.scales import linear, symmetric
from fsa2lrnn.extra.report.facts import Model

_SIZE, _STRIP = 280, 64
_TICKS = (
    (-1, "0"),
    (-0.1, ".9"),
    (-0.01, ".99"),
    (-0.001, ".999"),
    (0, "1"),
    (0.001, "1.001"),
    (0.01, ""),
    (0.1, "1.1"),
)


def eigenvalues(model: Model, letters: list[str]) -> Markup:
    """All letters' eigenvalues: those of heads that carry the state in colour, the others pale."""
    given, carrying = model.within.eigenvalues, set(model.within.carrying)
    numbers = [
        (complex(*pair), h in carrying, f"{pair[0]:+.4f} {pair[1]:+.4f}i, letter {letter}, head {h + 1}")
        for letter, heads in zip(letters, given, strict=True)
        for h, head in enumerate(heads)
        for pair in head
    ]
    numbers.sort(key=lambda found: found[1])
    reach = max(1.25, *(abs(z) * 1.08 for z, _, _ in numbers))
    x = linear(-reach, reach, 8, _SIZE - 8)
    drawn = [
        line(8, _SIZE / 2, _SIZE - 8, _SIZE / 2, "grid"),
        line(_SIZE / 2, 8, _SIZE / 2, _SIZE - 8, "grid"),
        tag("circle", cx=_SIZE / 2, cy=_SIZE / 2, r=x(1) - x(0), class_="unit"),
        text(_SIZE - 10, _SIZE / 2 - 6, "Re", anchor="end", class_="label faint"),
        text(_SIZE / 2 + 6, 18, "Im", anchor="start", class_="label faint"),
    ]
    for z, is_carrying, said in numbers:
        class_ = f"dot {model.kind}" if is_carrying else "dot idle"
        drawn.append(tag("circle", tag("title", said), cx=x(z.real), cy=_SIZE - x(z.imag), r=3.4, class_=class_))
    drawn += _strip(model, [(abs(z), is_carrying) for z, is_carrying, _ in numbers])
    name = f"Eigenvalues of {model.name} with the unit circle, and their moduli"
    return picture(_SIZE, _SIZE + _STRIP, name, *drawn)


def _strip(model: Model, moduli: list[tuple[float, bool]]) -> list[Markup]:
    top = _SIZE + 22
    x = linear(symmetric(-1), symmetric(0.1), 18, _SIZE - 18)
    drawn = [line(18, top, _SIZE - 18, top, "axis"), line(x(0), top - 12, x(0), top + 12, "unit")]
    for value, label in _TICKS:
        place = x(symmetric(value))
        drawn += [
            line(place, top, place, top + 4, "axis"),
            text(place, top + 17, label, class_="label tiny"),
        ]
    drawn.append(text(_SIZE / 2, top + 34, "modulus, a logarithmic scale about 1", class_="label faint"))
    for modulus, is_carrying in moduli:
        class_ = f"tick {model.kind}" if is_carrying else "tick idle"
        place = min(max(x(symmetric(modulus - 1)), 10), _SIZE - 10)
        drawn.append(line(place, top - 10, place, top - 1, class_))
    return drawn
