import re

from fsa2lrnn.extra.report.style import STYLE


def test_every_colour_that_is_used_has_a_value_in_both_palettes():
    light, dark = (dict(re.findall(r"(--[\w-]+):\s*([^;]+);", part)) for part in STYLE.split("@media", 2)[:2])
    used = set(re.findall(r"var\((--[\w-]+)\)", STYLE)) - {"--h", "--tint", "--kind"}
    assert used <= set(light)
    assert set(light) - {"color-scheme"} == set(dark) - {"--tint"}
    assert "url(http" not in STYLE
    assert "@import" not in STYLE


def test_braces_match():
    assert STYLE.count("{") == STYLE.count("}")
