"""The published simulator of Pollux (OSDI 2021), job by job, under two of its schedulers."""

import json
from pathlib import Path

import numpy as np
import pytest

from app.kinds.cluster.placement import Rule
from app.kinds.cluster.strategies import equal_share, fifo, optimus, srtf, tiresias
from tests.pollux.measured import Application, read_applications
from tests.pollux.simulator import ClusterSimulator, read_log

WORKLOADS = ("workload-1", "workload-2", "workload-3", "workload-4")


@pytest.fixture(scope="module")
def folder(shared_data: Path) -> Path:
    return shared_data / "pollux-osdi21"


@pytest.fixture(scope="module")
def applications(folder: Path) -> dict[str, Application]:
    return read_applications(folder / "traces")


@pytest.mark.parametrize("workload", WORKLOADS)
@pytest.mark.parametrize("rule", [tiresias, optimus])
def test_every_job_takes_as_long_as_published(
    rule: Rule, workload: str, folder: Path, applications: dict[str, Application]
) -> None:
    golden = json.loads((folder / "golden_jct.json").read_text())[rule.__name__]["jct"][workload]
    simulator = ClusterSimulator(applications, read_log(folder / "workloads" / f"{workload}.csv"), rule)
    assert simulator.run() == golden


@pytest.mark.parametrize("rule", [equal_share, fifo, srtf, tiresias])
def test_progress_is_never_lost_and_no_node_is_overfull(
    rule: Rule, folder: Path, applications: dict[str, Application]
) -> None:
    simulator = ClusterSimulator(applications, read_log(folder / "workloads" / "workload-1.csv")[:40], rule)
    known: dict[int, float] = {}
    for _ in range(200):
        simulator.step()
        allocation = simulator.jobs.allocation
        assert (allocation.sum(axis=0) <= simulator.capacity).all()
        assert (allocation.sum(axis=1) <= np.maximum(simulator.jobs.maximum, simulator.jobs.requested)).all()
        now = dict(zip(simulator.which, simulator.progress.done.tolist(), strict=True))
        assert all(done >= known.get(job, 0.0) for job, done in now.items())
        known |= now
    assert simulator.jobs.restarts.sum() > 0


def test_what_stood_still_goes_on_where_it_was(folder: Path, applications: dict[str, Application]) -> None:
    log = read_log(folder / "workloads" / "workload-1.csv")[:1]
    whole = ClusterSimulator(applications, log, tiresias)
    paused = ClusterSimulator(applications, log, tiresias)
    for _ in range(4):
        whole.step()
        paused.step()
    paused.capacity = np.zeros_like(paused.capacity)
    paused.step()
    done = paused.progress.done.copy()
    for _ in range(5):
        paused.step()
    np.testing.assert_array_equal(paused.progress.done, done)
    paused.capacity = whole.capacity
    late = paused.run()[log[0].name] - whole.run()[log[0].name]
    assert 5 * 60 <= late <= 7 * 60 + 30  # the pause, another start, and at most an interval until each is seen


def test_what_was_not_measured_is_refused(applications: dict[str, Application]) -> None:
    with pytest.raises(ValueError, match="bert was not measured near a local batch of 100"):
        applications["bert"].step((1,), 100)
    with pytest.raises(ValueError, match="batch size 3 is outside of what was measured: 12 to 384"):
        applications["bert"].gain(12, 3)
