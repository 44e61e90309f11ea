"""The claims of the paper and of this project as checked objects: `python -m verify`."""
