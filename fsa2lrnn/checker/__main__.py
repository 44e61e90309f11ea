"""Run `python -m fsa2lrnn.checker`, or `python checker` for a copy of the folder alone."""

import sys
from importlib import import_module
from pathlib import Path

if __name__ == "__main__":
    package = __package__
    if not package:  # Python runs the folder itself: it is a package of its own
        folder = Path(__file__).resolve().parent
        sys.path[0], package = str(folder.parent), folder.name
    sys.exit(import_module(f"{package}.program").main(sys.argv[1:]))
