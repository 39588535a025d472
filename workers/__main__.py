"""Command `python -m workers`: run a worker with its child processes, as `steward worker` and `steward serve` do."""

from __future__ import annotations

import argparse
import os
import sys

SINGLE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")


def main() -> None:
    """Parse the command line and run a worker until SIGTERM; exit with status 2 if a start-up check fails.

    Numeric libraries are limited to one thread per process (environment variables) before any of them is imported.
    """
    parser = argparse.ArgumentParser(prog="python -m workers", description=__doc__)
    parser.add_argument("--concurrency", type=int, default=1, help="number of processes that work")
    parser.add_argument("--parent", type=int, default=0, help="process id that this worker must not outlive")
    arguments = parser.parse_args()
    for name in SINGLE_THREAD:  # one thread per process
        os.environ.setdefault(name, "1")

    from app import startup
    from app.processes import die_with_parent, importing

    if arguments.parent:
        die_with_parent(arguments.parent)
    try:
        check()
    except startup.StartupError as error:
        sys.stderr.write(f"steward worker: {error}\n")
        sys.exit(startup.EXIT_STATUS)

    with importing():
        from workers.celery import work

    work(arguments.concurrency)


def check() -> None:
    """Check that a worker can start: learning packages, settings, database and broker.

    Raises:
        StartupError: a check failed; the message says which.
    """
    from app import startup

    startup.check_learning("steward worker")
    settings = startup.load_settings()
    startup.check(settings, creates=False)
    problem = startup.broker_problem(settings)
    if problem is not None:
        raise startup.StartupError(problem)


if __name__ == "__main__":
    main()
