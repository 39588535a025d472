"""The same jobs through the book that the service keeps and through the simulator get the same GPUs."""

from pathlib import Path

import numpy as np
import pytest

from app.kinds.cluster.advance import advance
from app.kinds.cluster.decide import Advice, decide
from app.kinds.cluster.layout import Layout, begin
from app.kinds.cluster.placement import Rule
from app.kinds.cluster.report import ClusterReport, Ended, Submitted
from app.kinds.cluster.spec import ClusterSpec
from app.kinds.cluster.strategies import by_priority, fifo, tiresias
from tests.app.kinds.cluster.situations import unmeasured
from tests.pollux.measured import read_applications
from tests.pollux.simulator import ClusterSimulator, read_log


@pytest.mark.parametrize("rule", [fifo, tiresias, by_priority([np.inf])])
def test_served_as_simulated(rule: Rule, shared_data: Path) -> None:
    folder = shared_data / "pollux-osdi21"
    log = read_log(folder / "workloads" / "workload-1.csv")
    simulator = ClusterSimulator(read_applications(folder / "traces"), log, rule)
    nodes = [{"name": "n", "count": 16, "gpus": 4}]
    layout = Layout(ClusterSpec.model_validate({"name": "c", "kind": "cluster", "nodes": nodes}))
    state, compared = begin(layout), 0
    while simulator.now < 30_000:
        simulator.step()
        present = [log[number] for number in simulator.which]
        gone = [Ended(name) for name in state.names if name in simulator.completed]
        new = [job for job in present if job.name not in state.names]
        came = [Submitted(job.name, job.gpus, at=job.time) for job in new]
        report = ClusterReport(simulator.now, submitted=tuple(came), ended=tuple(gone))
        reported = advance(layout, state, report)
        state, _ = decide(layout, reported, Advice(rule, unmeasured(layout, reported)))
        assert list(state.names) == [job.name for job in present]
        np.testing.assert_array_equal(state.jobs.allocation, simulator.jobs.allocation)
        np.testing.assert_array_equal(state.jobs.demoted, simulator.jobs.demoted)
        compared += len(present)
    assert compared > 1_000
