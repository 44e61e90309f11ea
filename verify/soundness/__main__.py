"""`python -m verify.soundness`: models drawn, judged and run; counts on standard output, exit 1 where one is wrong."""

from __future__ import annotations

import json
import sys

from verify.soundness.run import run

COUNT = 600

if __name__ == "__main__":
    counts = run(int(sys.argv[1]) if len(sys.argv) > 1 else COUNT)
    print(json.dumps(dict(sorted(counts.items())), indent=1))
    raise SystemExit(1 if any(value for name, value in counts.items() if name.startswith("wrong")) else 0)
