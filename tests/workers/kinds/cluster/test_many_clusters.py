"""The compiled simulator does, step by step, what the plain one does."""

from pathlib import Path

import numpy as np
import pytest

from app.kinds.cluster.jobs import Floats, Integers
from app.kinds.cluster.placement import Rule, Situation
from app.kinds.cluster.strategies import completing, soonest
from tests.pollux.measured import Application, read_applications
from tests.pollux.simulator import ClusterSimulator, Settings, Submission, draw, read_log
from tests.pollux.tables import clusters, play, tabled
from workers.kinds.cluster.kernels import CHANGED, ENDED, THERE, Rules, allocate_gpus, apply_allocation, pass_interval

SETTINGS = Settings(nodes=4)
QUEUES = np.array([4.0, 1.0, 1.0]), np.array([np.inf, 900.0, 1_800.0]), 3_600.0
"""Weights, ageing and patience."""


class Told:
    """See ``Outlook``: by tables, and what is left in truth."""

    def __init__(self, rules: Rules, kind: Integers, epoch: Integers, done: Floats) -> None:
        self._rules, self._kind, self._epoch, self._done = rules, kind, epoch, done

    def update_seconds(self) -> Floats:
        raise NotImplementedError  # the rule asks for no more than what follows

    updates = update_seconds

    def loss_reduction(self, gpus: Integers, seconds: float) -> Floats:
        raise NotImplementedError

    def goodput(self, gpus: Integers) -> Floats:
        return self._rules.rate[self._kind[:, None], gpus, self._epoch[:, None]]

    def seconds_left(self, gpus: Integers) -> Floats:
        left = self._rules.ends[self._kind, self._rules.epochs[self._kind] - 1] - self._done
        with np.errstate(divide="ignore"):
            return left[:, None] / np.take_along_axis(
                self.goodput(self._rules.sizes), np.searchsorted(self._rules.sizes, gpus), axis=1
            )


class Plain(ClusterSimulator):
    """The plain simulator, with jobs that go as the tables say."""

    def __init__(self, applications: dict[str, Application], log: list[Submission], rules: Rules, rule: Rule) -> None:
        super().__init__(applications, log, rule, SETTINGS)
        self._tables = rules
        self._rates.table = rules.rate.reshape(-1, rules.rate.shape[2])
        self._been = np.zeros(len(log), np.int64)

    def _row(self, at: int) -> int:
        gpus = int(self.jobs.allocation[at].sum())
        kind = int(self.progress.application[at])
        return kind * self._tables.rate.shape[1] + gpus

    def rows(self, at: Integers) -> Integers:
        numbers = np.array(self.which)[at]
        self._been[numbers] = np.maximum(self._been[numbers], self.jobs.gpus[at])
        return super().rows(at)

    def situation(self) -> Situation:
        kind = self.progress.application
        most = self._tables.most[kind]
        if self._tables.growth:
            most = np.minimum(most, np.maximum(1, self._tables.growth * self._been[self.which]))
        self.jobs = self.jobs._replace(maximum=most)
        outlook = Told(self._tables, kind, self.progress.epoch, self.progress.done)
        return Situation(self.now, self.capacity, self.jobs, outlook, self.settings.restart_seconds)


@pytest.fixture(scope="module")
def applications(shared_data: Path) -> dict[str, Application]:
    return read_applications(shared_data / "pollux-osdi21" / "traces")


@pytest.fixture(scope="module")
def logs(shared_data: Path) -> list[list[Submission]]:
    folder = shared_data / "pollux-osdi21" / "workloads"
    read = [read_log(folder / f"workload-{number}.csv") for number in (1, 2, 3, 4)]
    return [draw(read, 0.2, np.random.default_rng(seed)) for seed in range(3)]


@pytest.mark.parametrize(("growth", "queues"), [(0, 1), (2, 1), (0, 3)])
def test_step_by_step_as_the_plain_simulator(
    applications: dict[str, Application], logs: list[list[Submission]], growth: int, queues: int
) -> None:
    rules, speed, rule = tabled(applications, SETTINGS, growth), np.array([1.0, 1.0, 0.5, 1.0]), soonest
    if queues > 1:
        logs = [[job._replace(queue=number % queues) for number, job in enumerate(log)] for log in logs]
        weight, ageing, patience = QUEUES
        disturbed = np.random.default_rng(0).uniform(0.0, 0.7, (len(applications),) * 2)
        rules, rule = (
            rules._replace(weight=weight, ageing=ageing, patience=patience, log_slowdown=disturbed),
            completing(weight.tolist(), ageing.tolist(), patience),
        )
    changes = [[(3_000.0, 1, 0), (3_000.0, 2, 2), (9_000.0, 1, 4)], [], [(60.0, 0, 1)]]
    many = clusters(logs, [*applications], SETTINGS, changes, speed)
    plain = [Plain(applications, log, rules, rule) for log in logs]
    compared = 0
    for _ in range(240):
        for b, one in enumerate(plain):
            one.speed = speed
            one.log_slowdown = rules.log_slowdown if len(rules.log_slowdown) else one.log_slowdown
            result = many.counts[b, CHANGED]
            pass_interval(rules, many, b)
            for _, node, gpus in changes[b][result : many.counts[b, CHANGED]]:
                one.capacity[node] = gpus
            one.step()
            count = int(many.counts[b, THERE])
            there = many.there[b, :count]
            assert there.tolist() == one.which
            if count:
                apply_allocation(rules, many, b, allocate_gpus(rules, many, b))
            np.testing.assert_array_equal(many.held[b, there], one.jobs.allocation)
            np.testing.assert_array_equal(many.done[b, there], one.progress.done)
            np.testing.assert_array_equal(many.restarts[b, there], one.jobs.restarts)
            np.testing.assert_array_equal(many.restarting[b, there], one.jobs.restarting)
            assert (many.held[b].sum(axis=0) <= many.capacity[b]).all()
            compared += count
    assert compared > 500
    for b, one in enumerate(plain):
        ended = [one.completed[job.name] for job in logs[b] if job.name in one.completed]
        np.testing.assert_array_equal(many.completed[b][~np.isnan(many.completed[b])], ended)


def test_every_job_ends(applications: dict[str, Application], logs: list[list[Submission]]) -> None:
    rules, many = tabled(applications, SETTINGS), clusters(logs, [*applications], SETTINGS)
    assert play(rules, many) > 1_000
    assert many.counts[:, ENDED].tolist() == [*map(len, logs)]
    for b, log in enumerate(logs):
        assert (many.completed[b, : len(log)] > 0).all()
        assert np.isnan(many.completed[b, len(log) :]).all()
