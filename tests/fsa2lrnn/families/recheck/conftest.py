"""Leave out the tests of certificates that the extra "block_size" makes, where the tree lacks it."""

from pathlib import Path

import fsa2lrnn

if not (Path(fsa2lrnn.__file__).parent / "extra" / "block_size").is_dir():
    collect_ignore = ["test_block_size.py", "forgeries.py"]
