"""`python -m workers`: a worker with its processes. `steward worker` and `steward serve` start it."""

from __future__ import annotations

import argparse
import os

SINGLE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")


def main() -> None:
    """Prepare this process before anything numeric is imported, then work until SIGTERM."""
    parser = argparse.ArgumentParser(prog="python -m workers", description=__doc__)
    parser.add_argument("--concurrency", type=int, default=1, help="number of processes that work")
    parser.add_argument("--parent", type=int, default=0, help="process id that this worker must not outlive")
    arguments = parser.parse_args()
    for name in SINGLE_THREAD:  # as many processes as asked for, one thread each
        os.environ.setdefault(name, "1")

    from app.processes import die_with_parent
    from workers.celery import work

    if arguments.parent:
        die_with_parent(arguments.parent)
    work(arguments.concurrency)


if __name__ == "__main__":
    main()
