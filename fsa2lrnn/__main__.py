"""`python -m fsa2lrnn` is the command `fsa2lrnn`."""

from fsa2lrnn.cli import main

if __name__ == "__main__":
    main()
