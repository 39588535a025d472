"""``python -m workers.kinds.workflow.training.pretrain LUBLIN SDSC FILE``: the scheduler that ships with the package.

One network for all machines and mechanisms. Two were searched for: one under committed heads (``none``, ``rls``), on
sequences drawn anew from the first 1,981 jobs of the Lublin log, before the first of the ten published sequences; and
one under EASY, on those and on pieces of the first 27,000 jobs of SDSC-SP2, with users' estimates. They are joined:
hidden units of each are shut by the feature that tells the mechanism. This program looks at neither KTH-SP2 nor any
published sequence. The search stops by the clock, so that numbers differ from run to run in the last digits and beyond.

What ships was searched for 840, 1,100 and 720 seconds, on cores that had other work too, and took the place of an
earlier one because it did better on fresh sequences of what was learned from. The base strategy, its patience and the
mechanism on SDSC-SP2 had been settled before, with a look at KTH-SP2 and the ten published sequences.
"""

import argparse
from pathlib import Path
from time import perf_counter

import numpy as np

from app.kinds.workflow.formats.swf import read_swf
from app.kinds.workflow.policies.artifact import save
from app.kinds.workflow.scheduling.dispatch import EASY, NONE, RLS
from app.kinds.workflow.scheduling.observation import FEATURES, WIDTH
from app.kinds.workflow.trace import Seconds
from workers.kinds.workflow.simulator.agents import Agent
from workers.kinds.workflow.training import widths
from workers.kinds.workflow.training.search import Search, Settings
from workers.kinds.workflow.training.sequences import Sequence, Source, drawn, piece
from workers.kinds.workflow.training.train import blank, network, scorer_of

WIDE, JOINT = widths.WIDE // 2, widths.JOINT // 2  # of each of the two
LUBLIN_JOBS, SDSC_JOBS = 1_981, 27_000  # what is learned from; the rest is for judging
SHORT, LONG = 1_024, 4_096
CLOSED_BIAS = 1e3  # closes a hidden unit, whatever the other features say
COMMITTED, RESERVING = Settings(10, 10, 0.12, 0.08), Settings(10, 10, 0.08, 0.05)

Recipe = tuple[tuple[int, int], ...]  # sources and mechanisms, in turn


def main() -> None:
    """Search, join, write."""
    parser = argparse.ArgumentParser(prog="python -m workers.kinds.workflow.training.pretrain")
    parser.add_argument("lublin", type=Path, help="lublin_256.swf.gz")
    parser.add_argument("sdsc", type=Path, help="SDSC-SP2, filtered as pyss plays it")
    parser.add_argument("file", type=Path)
    parser.add_argument("--seconds", type=float, default=1_200.0, help="for each of the three searches")
    arguments = parser.parse_args()
    lublin, sdsc = read_swf(arguments.lublin).trace, read_swf(arguments.sdsc, sort=True).trace
    sources = [
        Source(piece(lublin, 0, LUBLIN_JOBS), 256, whole=False),
        Source(piece(sdsc, 0, SDSC_JOBS), 128, whole=True),
    ]
    committed = searched(sources, ((0, NONE), (0, RLS)), COMMITTED, arguments.seconds)
    balanced, leaning = ((0, EASY), (1, EASY)), ((0, EASY), (1, EASY), (1, EASY))  # SDSC-SP2 is the harder to gain on
    reserving = searched(sources, balanced, RESERVING, arguments.seconds)
    reserving = searched(sources, leaning, RESERVING, arguments.seconds, reserving)
    arguments.file.write_bytes(save(scorer_of(joined(committed, reserving), widths.WIDE, widths.JOINT)))


def searched(
    sources: list[Source], recipe: Recipe, settings: Settings, seconds: float, start: Seconds | None = None
) -> Seconds:
    """The best network of a search of so many seconds, that begins at ``start``, or else at the base strategy."""

    def draw(count: int, rng: np.random.Generator) -> list[Sequence]:
        found = []
        for i in range(count):
            at, mechanism = recipe[i % len(recipe)]
            source = sources[at]
            length = LONG if source.whole else SHORT
            found.append(Sequence(drawn(source, length, rng), source.processors, mechanism))
        return found

    again = int(start is not None)
    rng, learned = np.random.default_rng(again), np.random.default_rng(7 + again)
    validation = draw(24 + 12 * again, np.random.default_rng(99 - again))
    point = blank(rng, WIDE, JOINT) if start is None else start
    search = Search(
        lambda p: network(p, WIDE, JOINT), lambda count: draw(count, learned), validation, point, rng, settings
    )
    begun = perf_counter()
    while (gone := perf_counter() - begun) < seconds:
        search.advance(gone / seconds)
    return search.best


def narrow(point: Seconds) -> Agent:
    """An agent that asks one of the two networks."""
    return network(point, WIDE, JOINT)


def joined(committed: Seconds, reserving: Seconds) -> Seconds:
    """One network that is ``reserving`` under EASY and ``committed`` else, twice as wide as each."""
    easy = FEATURES.index("easy")
    cuts = np.cumsum([WIDTH * WIDE, WIDE, WIDE * JOINT, JOINT, JOINT])
    parts = [np.split(point, cuts) for point in (committed, reserving)]
    first = np.concatenate([part[0].reshape(WIDTH, WIDE) for part in parts], axis=1)
    bias = np.concatenate([part[1] for part in parts])
    first[easy, :WIDE] -= CLOSED_BIAS
    first[easy, WIDE:] += CLOSED_BIAS
    bias[WIDE:] -= CLOSED_BIAS
    second = np.zeros((2 * WIDE, 2 * JOINT))
    second[:WIDE, :JOINT], second[WIDE:, JOINT:] = (part[2].reshape(WIDE, JOINT) for part in parts)
    rest = [np.concatenate([part[i] for part in parts]) for i in (3, 4)]
    return np.concatenate([first.ravel(), bias, second.ravel(), *rest, np.zeros(1)])


if __name__ == "__main__":
    main()
