"""`python -m fsa2lrnn.checker`, or `python checker` of the folder alone, wherever it was copied to."""

import sys
from importlib import import_module
from pathlib import Path

if __name__ == "__main__":
    package = __package__
    if not package:  # the folder was given to Python: it is a package of its own
        folder = Path(__file__).resolve().parent
        sys.path[0], package = str(folder.parent), folder.name
    sys.exit(import_module(f"{package}.program").main(sys.argv[1:]))
