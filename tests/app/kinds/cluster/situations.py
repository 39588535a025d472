"""Situations to allocate in, with a planted outlook."""

import numpy as np
from hypothesis import strategies as st

from app.kinds.cluster import jobs as table
from app.kinds.cluster.jobs import NEVER, Floats, Integers
from app.kinds.cluster.layout import ClusterState, Layout
from app.kinds.cluster.model import ClusterModel
from app.kinds.cluster.outlook import Beliefs, BelievedOutlook
from app.kinds.cluster.placement import Situation, in_order, place
from tests.pollux.goodput import seconds_by_table


def unmeasured(layout: Layout, state: ClusterState) -> BelievedOutlook:
    """What is expected of a state's jobs without a domain model, and without what was measured of them."""
    beliefs = Beliefs(ClusterModel.unfitted(layout))
    return BelievedOutlook(beliefs, state.jobs, state.records, int(state.capacity.sum()))


class Planted:
    """Updates take ``computing`` seconds, shared by the GPUs, and ``network`` seconds for each of them, [J]."""

    def __init__(self, gpus: int, computing: Floats, network: Floats, left: Floats, maximum: Integers) -> None:
        self._gpus, self._computing, self._network, self._left, self._maximum = gpus, computing, network, left, maximum

    def update_seconds(self) -> Floats:
        counts = np.arange(self._gpus + 1.0)
        with np.errstate(divide="ignore"):
            seconds = self._computing[:, None] / counts + self._network[:, None] * counts
        return np.where(counts > self._maximum[:, None], np.inf, seconds)

    def updates(self) -> Floats:
        return self._left

    def goodput(self, gpus: Integers) -> Floats:
        return 1 / self.update_seconds()[:, gpus]

    def loss_reduction(self, gpus: Integers, seconds: float) -> Floats:
        done = seconds * self.goodput(gpus)
        return 1 - 1 / (1 + done / self._left[:, None])

    def seconds_left(self, gpus: Integers) -> Floats:
        return seconds_by_table(self, gpus)


@st.composite
def situations(draw: st.DrawFn, most: int = 12) -> Situation:
    """Up to ``most`` jobs on one to five nodes, of which some may be lost or smaller, some jobs hold GPUs already."""
    count = draw(st.integers(1, most))
    capacity = np.array(draw(st.lists(st.integers(0, 4), min_size=1, max_size=5)), np.int64)
    numbers = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    minimum = numbers.integers(1, 4, count)
    maximum = minimum + numbers.integers(0, 8, count)
    request = numbers.integers(minimum, maximum + 1)
    empty = table.none(len(capacity))
    submitted = np.sort(numbers.uniform(0, 1e4, count))
    jobs = table.arrive(empty, submitted, numbers.integers(0, 2, count), request, (minimum, maximum))
    jobs = jobs._replace(demoted=np.where(numbers.random(count) < 0.4, numbers.uniform(0, 1e4, count), NEVER))
    gpus = int(capacity.sum())
    outlook = Planted(gpus, numbers.uniform(1, 9, count), numbers.uniform(0, 1, count), np.ones(count) * 50, maximum)
    situation = Situation(2e4, capacity, jobs, outlook, 30.0)
    before = np.where((request * (numbers.random(count) < 0.5)).cumsum() <= gpus, request, 0)
    before[before.cumsum() > gpus] = 0
    placement = place(situation, in_order(before))
    fewer = np.minimum(capacity, np.where(numbers.random(len(capacity)) < 0.2, 0, 4))
    return situation._replace(jobs=jobs._replace(allocation=placement), capacity=fewer)
