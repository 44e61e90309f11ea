"""Run the checker as `python -m fsa2lrnn.families.recheck FILE`, or as `python recheck FILE` on the folder alone."""

import sys
from importlib import import_module
from pathlib import Path

if __name__ == "__main__":
    package = __package__
    if not package:  # the folder was given to Python: it is a package of its own
        folder = Path(__file__).resolve().parent
        sys.path[0], package = str(folder.parent), folder.name
    print(import_module(package).main(sys.argv[1:]))
