"""Registration of kind ``cluster``: training jobs in queues of different priority, on the GPUs of several nodes."""

from operator import attrgetter

from app.charts.text import count_text, exact
from app.kinds.cluster import views
from app.kinds.cluster.engine import ENGINE
from app.kinds.cluster.example import EXAMPLE
from app.kinds.cluster.layout import Layout
from app.kinds.cluster.model import PARAMETERS, ClusterModel, ClusterPrediction, predict
from app.kinds.cluster.policies import WITH_MODEL, load
from app.kinds.cluster.report import ClusterDecision, ClusterStart
from app.kinds.cluster.samples import ClusterExecution, ClusterSamples
from app.kinds.cluster.spec import ClusterPatch, ClusterSpec, apply_patch
from app.kinds.contract.kind import Description, Kind, Prediction, Terms, TrainingOptions, price_terms

REMEDY = "add nodes, or move the deadlines of its jobs"


def terms(spec: ClusterSpec) -> Terms:
    """Return prices per GPU-hour by node class, and the weights of the objective's terms."""
    return price_terms({node.name: node.price_per_hour for node in spec.nodes}, spec.weights.model_dump())


def describe(spec: ClusterSpec) -> Description:
    """Return a short text on a spec: nodes, duration of runs, and queues with their weights."""
    nodes = ", ".join(f"{count_text(n.count, f'{n.name} node')} of {count_text(n.gpus, 'GPU')}" for n in spec.nodes)
    queues = ", ".join(f"{one.name} (weight {exact(one.weight)})" for one in spec.queues)
    return Description(nodes, "no fixed length", f"completion times of {queues}", REMEDY)


def summarise(decision: ClusterDecision) -> str:
    """Return one line on a decision: numbers of changed, running and waiting jobs, and of free GPUs."""
    count = len(decision.changes)
    changes = "no change" if not count else "1 job changed" if count == 1 else f"{count:,} jobs changed"
    return f"{changes}; {decision.running:,} running, {decision.waiting:,} pending, {decision.free:,} GPUs free"


KIND = Kind(
    name="cluster",
    spec=ClusterSpec,
    patch=ClusterPatch,
    start=ClusterStart,
    decision=ClusterDecision,
    execution=ClusterExecution,
    samples=ClusterSamples,
    engine=ENGINE,
    layout=Layout,
    model=ClusterModel.from_bytes,
    apply_patch=apply_patch,
    forecasters=ClusterModel.forecasters,  # of the jobs that come to each queue, and of GPUs in use
    members=attrgetter("members"),  # workloads whose runs are jobs
    artifact=load,
    terms=terms,
    judge=views.judge,  # by the deadlines of jobs that are runs of members
    describe=describe,
    summarise=summarise,
    example=EXAMPLE,
    prediction=Prediction(PARAMETERS, ClusterPrediction, predict),
    training=TrainingOptions(experts=(WITH_MODEL,), steps_per_second=500.0),
    views=views.ClusterViews(),
)
