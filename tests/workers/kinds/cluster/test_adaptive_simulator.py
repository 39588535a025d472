from pathlib import Path

import numpy as np
import pytest

from app.kinds.cluster.strategies import goodput, soonest
from tests.pollux.adaptive import AdaptiveSimulator, Experience
from tests.pollux.measured import ONE_GPU, read_applications
from tests.pollux.simulator import read_log


@pytest.fixture(scope="module")
def simulator(shared_data: Path) -> AdaptiveSimulator:
    folder = shared_data / "pollux-osdi21"
    log = read_log(folder / "workloads" / "workload-3.csv")[:30]
    return AdaptiveSimulator(read_applications(folder / "traces"), log, goodput)


def test_jobs_grow_by_twice_what_they_have_measured_and_keep_their_progress(simulator: AdaptiveSimulator) -> None:
    known: dict[int, float] = {}
    while not simulator.over:
        before = {number: simulator.profiles[number].most for number in simulator.which}
        simulator.step()
        allocation, done = simulator.jobs.allocation, simulator.progress.done.tolist()
        assert (allocation.sum(axis=0) <= simulator.capacity).all()
        for at, number in enumerate(simulator.which):
            gpus = int(allocation[at].sum())
            assert gpus <= max(1, 2 * max(before.get(number, 0), simulator.profiles[number].most))
            assert gpus <= (1 if simulator.log[number].application in ONE_GPU else 64)
            assert done[at] >= known.get(number, 0.0)
        known = dict(zip(simulator.which, done, strict=True))
    assert len(simulator.completed) == 30
    assert all(seconds > 0 for seconds in simulator.completed.values())


def test_what_is_expected_comes_close_to_what_is_measured(shared_data: Path) -> None:
    folder = shared_data / "pollux-osdi21"
    applications = read_applications(folder / "traces")
    log = [job for job in read_log(folder / "workloads" / "workload-1.csv") if job.application == "cifar10"][:1]
    simulator = AdaptiveSimulator(applications, log, goodput)
    while not simulator.which or simulator.profiles[0].most < 16:
        simulator.step()
    simulator.step()
    [result] = simulator.value(np.array([16]))
    application, batch = applications["cifar10"], simulator.known([0])
    rate = simulator.progress.rates.table[simulator.rows(np.array([0]))[0], int(simulator.progress.epoch[0])]
    assert simulator.jobs.gpus[0] == 16
    assert result.item() == pytest.approx(rate * application.initial, rel=0.1)
    assert batch.initial.tolist() == [application.initial]


def test_experience_tells_what_jobs_need_and_lets_them_begin_with_more(shared_data: Path) -> None:
    folder = shared_data / "pollux-osdi21"
    applications = read_applications(folder / "traces")
    log = [job for job in read_log(folder / "workloads" / "workload-3.csv") if job.application == "cifar10"][:3]
    experience = Experience()
    assert experience.remaining("cifar10", 5.0) == 5.0
    first = AdaptiveSimulator(applications, log, soonest, experience=experience)
    alone = first.run()
    assert experience.totals["cifar10"] == pytest.approx([applications["cifar10"].ends[-1]] * 3)
    later = AdaptiveSimulator(applications, log, soonest, experience=experience)
    assert sum(later.run().values()) < sum(alone.values())
    assert experience.remaining("cifar10", 0.0) == pytest.approx(applications["cifar10"].ends[-1])


def test_without_throughput_each_job_measures_for_itself() -> None:
    experience = Experience(throughput=False)
    assert experience.profile("bert") is not experience.profile("bert")
    shared = Experience()
    assert shared.profile("bert") is shared.profile("bert")
