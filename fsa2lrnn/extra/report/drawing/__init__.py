"""Automata as drawings, and what HTML and SVG are made with: plain data in, text out, nothing of networks."""
