"""`python -m verify` is `fsa2lrnn verify --paper`: every proposition checked, with a summary."""

import sys

from fsa2lrnn.cli import main

if __name__ == "__main__":
    main(["verify", "--paper", *sys.argv[1:]])
