"""Drawings as SVG, by small functions. Colours are classes of the page's style sheet, which has two palettes."""
