"""Charts as SVG, one small function each; colours are classes of the page's style sheet, which has two palettes."""
