"""The claims, the paper's and ours, as checked objects: `python -m verify`. They use the library; nothing uses them."""
