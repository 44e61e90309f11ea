"""`python -m fsa2lrnn.families.recheck certificate.json`, or `python recheck certificate.json` of the folder alone."""

import sys
from importlib import import_module
from pathlib import Path

if __name__ == "__main__":
    room = __package__
    if not room:  # the folder was given to Python: it is a package of its own
        folder = Path(__file__).resolve().parent
        sys.path[0], room = str(folder.parent), folder.name
    print(import_module(room).main(sys.argv[1:]))
