"""The child of a serving process that searches for plans: a message in, a message out, until the parent is gone.

``python -m workers.kinds.workflow.plan_search DESCRIPTOR``: of a connection of ``multiprocessing``, of which raw bytes
alone are read and written. The first bytes that it sends are empty: its loops are compiled by then.
"""

import sys
from multiprocessing.connection import Connection

import numpy as np

from app.kinds.workflow.plans import Remaining, decoded, encoded
from workers.kinds.workflow.plan_search.search import searched

TRIAL = Remaining(
    parent_start=np.array([0, 0, 1]), parents=np.array([0]), data=np.ones(1), cost=np.ones((2, 2)),
    processors=np.ones(2, np.int64), end=np.zeros(0), node=np.array([0, 0]), order=np.arange(2),
    slots=np.ones(2, np.int64), available=np.zeros(2), pace=np.ones(2),
)  # fmt: skip


def main(descriptor: int) -> None:
    """Answer until the other end is closed."""
    searched(TRIAL, attempts=30)
    with Connection(descriptor) as parent:
        parent.send_bytes(b"")
        while True:
            try:
                asked = parent.recv_bytes()
            except EOFError:
                return
            parent.send_bytes(encoded(searched(Remaining(**decoded(asked)))))


if __name__ == "__main__":
    main(int(sys.argv[1]))
