"""What there is to gain on the shared problems: tuning, what could be known of each run, and all noise.

``STEWARD_DATA=… python -m benchmarks headroom`` (about half an hour on one core); ``headroom:NAME`` measures one
problem. Of kind ``iterative`` the rule's numbers are tuned to convergence on one set of episodes and compared with the
rule as served, behind the guard, on others that nothing was chosen on: 1,024 of each of five seeds; intervals are over
seeds. Of the other kinds the measurement is that of a training, with more generations and episodes; its intervals are
over the episodes, on which nothing was chosen. ``inference-LOAD`` are the loads of ``inference_agents``, drawn from
the model that is fitted to their training days; ``workflow-LOG`` are logs under EASY, whose first seven tenths choose
the best rule and whose rest is played.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

from app.kinds.cluster.model import ClusterModel
from app.kinds.iterative.heuristics import default_heuristic
from app.kinds.iterative.layout import Layout
from app.kinds.iterative.policies import load
from app.kinds.iterative.projector import Projector
from app.kinds.workflow.spec import Spec as WorkflowSpec
from benchmarks.inference_agents import CORES, FEW_CORES, believed, met, serving
from benchmarks.problems import PROBLEMS, problem
from benchmarks.workflow_generalisation import logs
from tests.contracts.learned_examples import documented
from workers.evaluation.headroom import MOST, TUNED, Headroom
from workers.evaluation.statistics import mean_interval
from workers.inputs import Workload
from workers.kinds.cluster.kind import KIND as CLUSTER
from workers.kinds.inference.kind import KIND as INFERENCE
from workers.kinds.iterative import tuning
from workers.kinds.iterative.judge import Evaluator
from workers.kinds.iterative.training import TRAINING_MEMBERS
from workers.kinds.simulated.headroom import Rivals, measure
from workers.kinds.workflow.kind import KIND as WORKFLOW
from workers.kinds.workflow.training.train import Compared
from workers.learning.training.request import Request

SEEDS, EPISODES = range(9_300, 9_305), 1_024
MARGIN, CROWDED = 0.01, 8
LONG, RULES, PLAYED = 16, 12, 24  # generations, rules of each, and episodes of each rule, of a simulated kind
JUDGED = {"inference": 256, "cluster": 96}  # episodes of the comparison
LOGS = ("KTH-SP2", "SDSC-SP2", "HPC2N", "Lublin-1")
LOADS = ("poisson", "bursty", "azure")
OTHERS = (*(f"inference-{load}" for load in LOADS), "cluster", *(f"workflow-{log}" for log in LOGS))
PARTS = (*PROBLEMS, *OTHERS)
Row = dict[str, Any]


def results(parts: Sequence[str] = PARTS) -> list[Row]:
    """A row for each problem of ``parts``."""
    return [_of_other_kind(name) if name in OTHERS else measured(name) for name in parts]


def _of_other_kind(name: str) -> Row:
    """The gain of tuning over what is served, in per cent of its return, with what else there is to gain."""
    begun = process_time()
    kind, _, which = name.partition("-")
    if kind == "workflow":
        compared = _workflow(which)
        size, spent = abs(compared.room.served["mean"]), process_time() - begun
        return _row(name, compared.room, 100 / size, f"{len(compared.tuned)} pieces", f"{spent:.0f} CPU-s")
    rivals = _inference(which) if kind == "inference" else _cluster()
    room, details = measure(rivals, 1, PLAYED, generations=LONG, population=RULES, judged=JUDGED[kind])
    report, spent = details["report"], process_time() - begun
    size = abs(room.served["mean"])
    state = f"{report['generations']} generations, {'converged' if report['converged'] else 'not converged'}"
    return _row(name, room, 100 / size, f"{len(details['tuned'])} episodes", f"{state}, {spent:.0f} CPU-s")


def _row(name: str, room: Headroom, scale: float, over: str, how: str) -> Row:
    gain, left = ({part: scale * value for part, value in one.items()} for one in (room.gain, room.left))
    beyond = room.why if room.beyond is None else f"at most {scale * room.beyond['mean']:.1f} %"
    reported = "tuned" if room.best == TUNED else room.best.replace("_", " ")
    return {
        "name": f"{name}: {reported} over {room.rule}, 95 % {gain['low']:+.2f} to {gain['high']:+.2f} % over {over}; "
        f"{room.knows} known: {left['mean']:.1f} % more, 95 % {left['low']:+.1f} to {left['high']:+.1f} %; all noise "
        f"known: {beyond} ({how})",
        "value": round(gain["mean"], 2),
        "unit": "% of the return",
        "peer": room.rule,
        "peer_value": round(room.served["mean"], 5),
        "ratio": None,
        "goal": f"no loss beyond {MARGIN:.0%}: {'missed' if gain['low'] < -100 * MARGIN else 'met'}",
    }


def _inference(load: str) -> Rivals:
    """The plays of one of the loads of ``inference_agents``."""
    data = Path(os.environ["STEWARD_DATA"])
    layout, seconds = serving(data, FEW_CORES if load == "azure" else CORES)
    model = believed(layout, seconds, met(load, data, layout.spec.episode_seconds).train)
    return INFERENCE.rivals(Workload(layout.spec, model.to_bytes()))


def _workflow(log: str) -> Compared:
    """What a training measures on a log under EASY, with a predictor fitted to what precedes the verdict's part."""
    trace, machine = logs(Path(os.environ["STEWARD_DATA"]) / "swf")[log]
    node = {"name": "machine", "processors": machine, "minimum": 1, "maximum": 1}
    spec = WorkflowSpec.model_validate({"name": "log", "kind": "workflow", "nodes": [node], "backfilling": "easy"})
    workload = Workload(spec, samples=[(log, trace)])
    return WORKFLOW.trainer(replace(workload, model=WORKFLOW.fit(workload, 0).model), Request(), None).compared


def _cluster() -> Rivals:
    """The plays of the documented cluster with ``CROWDED`` times as many jobs, of four hours."""
    workload = documented("cluster").workload
    spec = workload.spec.model_copy(update={"episode_intervals": 240})
    model = ClusterModel.from_bytes(CLUSTER.fit(workload, 0).model)
    arrivals = model.arrivals._replace(rate=CROWDED * model.arrivals.rate)
    return CLUSTER.rivals(replace(workload, spec=spec, model=replace(model, arrivals=arrivals).to_bytes()))


def measured(name: str) -> Row:
    """The gain of tuning over what is served, in per cent of its return, with what else there is to gain."""
    chosen, begun = problem(name), process_time()
    table = chosen.table.thinned(TRAINING_MEMBERS)
    tuned = tuning.tune(chosen.spec, table, 1, tuning.steps(Layout(chosen.spec), MOST))
    if tuned is None:
        raise ValueError(f"{name}: the budget of {MOST} generations was refused")
    spent = process_time() - begun
    room = tuning.headroom(chosen.spec, table, tuned.artifact, 1)
    rule, artifact = default_heuristic(Projector(Layout(chosen.spec), table)), load(tuned.artifact)
    gains, before = [], []
    for seed in SEEDS:
        evaluator = Evaluator(chosen.spec, table, seed, EPISODES)
        served = evaluator.score(rule).returns
        gains.append(float((evaluator.score_artifact(artifact).returns - served).mean()))
        before.append(float(served.mean()))
    peer = float(np.mean(before))
    gain = {part: 100 * value / abs(peer) for part, value in mean_interval(np.array(gains)).items()}
    known = f"{100 * room.left['mean'] / abs(peer):.1f} %"
    beyond = room.why if room.beyond is None else f"{100 * room.beyond['mean'] / abs(peer):.1f} %"
    state = f"{tuned.generations} generations, {'converged' if tuned.converged else 'not converged'}, {spent:.0f} CPU-s"
    return {
        "name": f"{name}: tuned over {rule.name}, 95 % {gain['low']:+.2f} to {gain['high']:+.2f} % over {len(gains)} "
        f"seeds; each run's law known: {known} more; all noise known: {beyond} ({state})",
        "value": round(gain["mean"], 2),
        "unit": "% of the return",
        "peer": rule.name,
        "peer_value": round(peer, 5),
        "ratio": None,
        "goal": f"no loss beyond {MARGIN:.0%}: {'missed' if gain['low'] < -100 * MARGIN else 'met'}",
    }


if __name__ == "__main__":
    for row in results():
        print(row)
