"""Automata as drawings, and helpers that build HTML and SVG: from plain data to text, independent of networks."""
