"""``STEWARD_DATA=… python -m benchmarks.held_out [WORLD …]``: the engine in this process beside rule and statics."""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import sys

from benchmarks.held_out.compare import compare
from benchmarks.held_out.engine import served_heuristic
from benchmarks.held_out.suite import WORLDS
from benchmarks.held_out.table import LEGEND


def main(names: list[str]) -> None:
    """Print a table of each world."""
    print(LEGEND)
    for name in names or WORLDS:
        print(f"\n{name}")
        for line in compare(WORLDS[name](), [served_heuristic]):
            print(line.text(), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
