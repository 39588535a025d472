"""Workflows served live: the makespan that a played cluster reaches by searched plans, beside HEFT's.

``STEWARD_DATA=… python -m benchmarks workflow_live``. The shared WfInstances of applications that nothing was tuned on,
of at most ``MOST`` tasks, on eight nodes of speeds 0.5, 1, 1, 2 with links on which data take as long as work on the
average (ratio 1), or half and twice as long. Every change is reported to the engine as a service would, through JSON;
what it decides comes true, with the run times that it expects or with log-normal ones around them. Peers: the engine's
own ``heft``, which starts tasks as they get ready; and HEFT's plan (Topcuoglu 2002) where run times come true, by the
same time model. Intervals: 95 %, by Student's t over the instances' logarithms.
"""

import json
import sys
import time
from datetime import UTC, datetime
from typing import Any

import numpy as np

from app.kinds.contract.engine import Pending, Snapshot
from app.kinds.contract.kind import RunStart
from app.kinds.engine import Engine
from app.kinds.workflow.engine import WorkflowServing
from app.kinds.workflow.queue import Layout
from app.kinds.workflow.report import QueueDecision
from app.kinds.workflow.spec import Spec
from app.kinds.workflow.trace import Trace
from benchmarks.workflow_dags import SPEEDS, instances, nodes, over
from tests.answers import all_answered
from tests.app.kinds.workflow.played import Cluster, Decide, Played, play

MOST = 150  # tasks
COUNT = 8  # nodes
RATIOS = (0.5, 1.0, 2.0)
SPREADS = (0.0, 0.3)  # of run times around what is expected, of their logarithm
Row = dict[str, Any]


def spec(trace: Trace, ratio: float, strategy: str) -> Spec:
    """The nodes of ``workflow_dags``, as a workload's."""
    on = nodes(trace, SPEEDS["mixed"], ratio, COUNT)
    types = [
        {"name": f"n{k}", "processors": 1, "speed": float(on.speed[k]), "minimum": 1, "maximum": 1}
        | {"bandwidth_mbps": float(on.bandwidth[k] / 1e6)}
        for k in range(COUNT)
    ]
    weights = {"slowdown": 0.0, "makespan": 1.0}
    return Spec.model_validate(
        {"name": "w", "kind": "workflow", "nodes": types, "strategy": strategy, "weights": weights}
    )


def deciding(engine: Engine, spec: Spec) -> Decide:
    """A run, reported to without HTTP; its state goes through JSON between two reports."""
    compiled = engine.compile(Snapshot("w", "w", 1, spec, Layout(spec), None, None, None, None, 0))
    now = datetime.now(UTC)
    selection = [engine.begin(compiled, "r", RunStart(workload="w"), now).state]

    def decide(iteration: int, report: dict[str, Any]) -> dict[str, Any]:
        read = engine.read(compiled, selection[0], iteration, engine.decode(json.dumps(report).encode()))
        [answered] = all_answered(engine.answer(compiled, [Pending("r", iteration, selection[0], read, {}, None)], now))
        selection[0] = engine.restore(json.loads(bytes(engine.serialise(answered.state))))
        return dict(json.loads(answered.decision))

    return decide


def played(engine: Engine, trace: Trace, ratio: float, strategy: str, spread: float, seed: int) -> Played:
    """One workflow by one strategy; the same run times for all of one seed."""
    workload = spec(trace, ratio, strategy)
    stray = np.random.default_rng(seed).lognormal(0.0, spread, trace.tasks) if spread else np.ones(trace.tasks)
    on = Layout(workload)
    return play(Cluster(trace, on.names, on.nodes, trace.runtime * stray), deciding(engine, workload))


def warm(engine: Engine, trace: Trace) -> None:
    """Wait until the search is there."""
    while "search for plans is starting" in played(engine, trace, 1.0, "agent", 0.0, 0).decisions[0]["reason"]["text"]:
        time.sleep(1.0)


def setting(engine: Engine, traces: list[Trace], ratio: float, spread: float) -> Row:
    """All workflows in one setting."""
    both = [
        [played(engine, trace, ratio, strategy, spread, k) for strategy in ("heft", "agent")]
        for k, trace in enumerate(traces)
    ]
    ends = np.array([[one.makespan for one in pair] for pair in both])
    plans = [[d["reason"]["plan"] for d in agent.decisions if d["reason"]["plan"]] for _, agent in both]
    own, heft = over(ends[:, 1], ends[:, 0]), np.array([first[0]["heft_seconds"] for first in plans])
    result = np.array([len({plan["made"] for plan in run}) for run in plans])
    took = np.array([plan["search_seconds"] for run in plans for plan in run])
    worst = float((ends[:, 1] / ends[:, 0]).max())
    how = f"off by e^N(0, {spread:g})" if spread else "as expected"
    against = "" if spread else f"; {over(ends[:, 1], heft)} of its plan's"
    name = (
        f"ratio {ratio:g}, run times {how}, {len(traces)} workflows: {own} of live HEFT's makespan, at most {worst:.3f}"
        f"{against}; {result.mean():.1f} plans of {took.mean():.2f} s"
    )
    print(name, file=sys.stderr, flush=True)
    met, goal = (own.high < 1, "sooner, with 95 %") if spread else (worst <= 1 + 1e-9, "never later")
    row = {"name": name, "value": own.mean, "unit": "x live HEFT", "peer": "live HEFT", "peer_value": 1.0}
    return {**row, "ratio": own.mean, "goal": f"{goal}: {'met' if met else 'missed'}"}


def results() -> list[Row]:
    """Every ratio with every spread."""
    traces, serving = [trace for trace in instances() if trace.tasks <= MOST], WorkflowServing()
    engine = Engine("workflow", QueueDecision, serving)
    warm(engine, traces[0])
    try:
        return [setting(engine, traces, ratio, spread) for spread in SPREADS for ratio in RATIOS]
    finally:
        serving.search.close()
