"""``STEWARD_DATA=… python -m benchmarks.held_out [--served] [--trained] [--episodes N] [--seed N] [WORLD …]``."""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
from contextlib import ExitStack

from steward_demos.service import own_service

from benchmarks.held_out.compare import EPISODES, SEED, compare
from benchmarks.held_out.engine import served_heuristic
from benchmarks.held_out.goals import rows
from benchmarks.held_out.play import Learner
from benchmarks.held_out.served import served
from benchmarks.held_out.suite import WORLDS
from benchmarks.held_out.table import LEGEND


def arguments() -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.held_out", description=LEGEND)
    parser.add_argument("worlds", nargs="*", metavar="WORLD", help=f"of {', '.join(WORLDS)}; all without any")
    parser.add_argument(
        "--served", action="store_true", help="over HTTP, in processes of its own; else the engine here"
    )
    parser.add_argument("--trained", action="store_true", help="served, and after a training by default too")
    parser.add_argument("--episodes", type=int, default=EPISODES)
    parser.add_argument("--goals", action="store_true", help="tell beside each line which goals it meets")
    parser.add_argument("--seed", type=int, default=SEED, help="of the episodes")
    return parser.parse_args()


def main(options: argparse.Namespace) -> None:
    """Print a table of each world."""
    with ExitStack() as stack:
        learners: list[Learner] = [served_heuristic]
        if options.served or options.trained:
            steward = stack.enter_context(own_service())
            learners = [served(steward), *([served(steward, {})] if options.trained else [])]
        print(LEGEND)
        for name in options.worlds or WORLDS:
            print(f"\n{name}")
            for line in compare(WORLDS[name](), learners, options.episodes, options.seed):
                print(line.text(), flush=True)
                for row in rows(name, line) if options.goals else ():
                    print(f"    {row['name']} {row['value']:.4g} {row['unit']}; {row['goal']}", flush=True)


if __name__ == "__main__":
    main(arguments())
