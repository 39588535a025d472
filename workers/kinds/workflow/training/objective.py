"""What a workload pays for beyond slowdown: its whole objective, on the machine that jobs run on."""

from typing import NamedTuple

import numpy as np

from app.kinds.workflow.layout import Layout, Nodes, nodes_of
from app.kinds.workflow.spec import NodeType, Objective, Spec
from app.kinds.workflow.trace import Seconds, Trace
from workers.kinds.workflow.evaluation.objective import reference, terms
from workers.kinds.workflow.simulator.schedule import Schedule


class ObjectiveWeights(NamedTuple):
    """Weights of the objective's terms, in the order of ``spec.TERMS`` [6], and the machine as the only node."""

    weights: Seconds
    nodes: Nodes


def largest(spec: Spec) -> NodeType:
    """The type of node that jobs run on."""
    return max(spec.nodes, key=lambda node: node.processors)


def machine_of(spec: Spec) -> Nodes:
    """The largest node, which always runs; trainings and verdicts take run times as they were recorded."""
    nodes = nodes_of((largest(spec).model_copy(update={"minimum": 1, "maximum": 1}),))
    return nodes._replace(speed=np.ones(1))


def objective_weights(spec: Spec) -> ObjectiveWeights | None:
    """A workload's weights; None where it is mean bounded slowdown alone, the default."""
    return None if spec.weights == Objective() else ObjectiveWeights(Layout(spec).weights, machine_of(spec))


def charged(objective: ObjectiveWeights, trace: Trace, begun: Seconds) -> float:
    """The weighted terms of jobs that began at these seconds [N]; as good as can be is the sum of the weights.

    So it is above 0, and two schedules may be compared by their ratio.
    """
    schedule = Schedule(begun, begun + trace.runtime, np.zeros(trace.tasks, np.int64))
    return float(objective.weights @ (1.0 + terms(trace, objective.nodes, schedule, reference(trace, objective.nodes))))
