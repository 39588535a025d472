"""Registration of kind ``workflow``: batch jobs and workflow DAGs on priced nodes."""

from typing import Any

from app.charts.text import count_text, exact
from app.kinds.contract.kind import Description, Kind, Terms, TrainingOptions, price_terms
from app.kinds.contract.run_outcome import EndedRun, Judgement
from app.kinds.workflow import policies, views
from app.kinds.workflow.engine import ENGINE
from app.kinds.workflow.example import EXAMPLE
from app.kinds.workflow.queue import Layout
from app.kinds.workflow.report import QueueDecision
from app.kinds.workflow.run_times import Predictor
from app.kinds.workflow.samples import TraceExecution, TraceSamples
from app.kinds.workflow.spec import WorkflowPatch, WorkflowSpec, apply_patch


def terms(spec: WorkflowSpec) -> Terms:
    """Return prices per node-hour by node type, and the weights of the objective's terms."""
    return price_terms({node.name: node.price_per_hour for node in spec.nodes}, spec.weights.model_dump())


def judge(compiled: Any, run: EndedRun) -> Judgement:  # noqa: ARG001
    """Return the outcome of a finished run: numbers of tasks that met or missed their deadlines."""
    return views.judge(run)


def describe(spec: WorkflowSpec) -> Description:
    """Return a short text on a spec: nodes, duration of runs, and terms of the objective with weights."""
    nodes = ", ".join(
        f"{count_text(n.minimum, f'{n.name} node', n.maximum)} of {count_text(n.processors, 'processor')}"
        for n in spec.nodes
    )
    wanted = [f"{name} {exact(weight)}" for name, weight in spec.weights.model_dump().items() if weight]
    remedy = f"raise the maximum of {' or '.join(node.name for node in spec.nodes)}, or move the tasks' deadlines"
    return Description(nodes, "no fixed length", f"weights: {', '.join(wanted)}" if wanted else "", remedy)


def summarise(decision: QueueDecision) -> str:
    """Return one line with the number of tasks that a decision starts."""
    started = len(decision.placements)
    return "1 task starts" if started == 1 else f"{started} tasks start" if started else "nothing starts"


KIND = Kind(
    name="workflow",
    spec=WorkflowSpec,
    patch=WorkflowPatch,
    decision=QueueDecision,
    execution=TraceExecution,
    samples=TraceSamples,
    engine=ENGINE,
    layout=Layout,
    model=Predictor.from_bytes,
    apply_patch=apply_patch,
    artifact=policies.artifact,
    check=policies.check,
    terms=terms,
    judge=judge,
    describe=describe,
    summarise=summarise,
    example=EXAMPLE,
    training=TrainingOptions(("auto",), ("seeds", "executor", "start_from", "imitate"), steps_per_second=80_000.0),
    simulated=False,
    views=views.WorkflowViews(),
)
