"""Registration of kind ``iterative``: a job whose allocation changes between its iterations."""

from app.charts.text import amount_or_duration, in_words, number, quantity, resource_name
from app.kinds.contract.kind import Description, Kind, Prediction, TrainingOptions
from app.kinds.iterative import policies, prediction, savings
from app.kinds.iterative.engine import ENGINE
from app.kinds.iterative.example import EXAMPLE
from app.kinds.iterative.heuristics import HEURISTICS
from app.kinds.iterative.layout import Layout
from app.kinds.iterative.model import ModelTable
from app.kinds.iterative.prediction import is_deadline
from app.kinds.iterative.prior import own_prior
from app.kinds.iterative.projection import member
from app.kinds.iterative.query import PARAMETERS
from app.kinds.iterative.report import Decision, IterationRunStart
from app.kinds.iterative.samples import ExecutionRead, IterationSamples
from app.kinds.iterative.spec import SECONDS, IterativePatch, IterativeSpec, Metric, apply_patch
from app.kinds.iterative.views import IterativeViews


def describe(spec: IterativeSpec) -> Description:
    """Describe a spec in a few words: resources, number of iterations, and targets."""
    metrics = [metric for metric in spec.metrics if metric.target is not None]
    resources = ", ".join(
        quantity("–".join(number(one, 9) for one in sorted({r.minimum, r.maximum})), r.name, r.unit)
        for r in spec.resources
    )
    eased = [f"relax the target of {one.name}" for one in metrics if not is_deadline(one)]
    eased += ["raise the deadline"] if len(eased) < len(metrics) else []
    most = f"the maximum of {' or '.join(resource_name(one.name) for one in spec.resources)}"
    more = any(one.goal == "at_least" or (one.name == SECONDS and one.goal == "at_most") for one in metrics)
    eased += [most if eased[-1:] == ["raise the deadline"] else f"raise {most}"] if more else []
    remedy = " or ".join(eased) or "relax the run's targets"
    return Description(resources, f"{spec.iterations:,}", "; ".join(map(_target_text, metrics)), remedy)


def _target_text(metric: Metric) -> str:
    sure = f" at {number(100 * metric.probability, 6)} %" if metric.probability is not None else ""
    aim = amount_or_duration(metric.target or 0.0, metric.unit)
    if is_deadline(metric):
        return f"deadline {aim}{sure}"
    return f"{metric.name.replace('_', ' ')} {metric.goal.replace('_', ' ')} {aim} per {metric.scope}{sure}"


def summarise(decision: Decision) -> str:
    """Return the allocation of a decision as one line of text."""
    return in_words(decision.allocation)


KIND = Kind(
    name="iterative",
    spec=IterativeSpec,
    patch=IterativePatch,
    start=IterationRunStart,
    decision=Decision,
    execution=ExecutionRead,
    samples=IterationSamples,
    engine=ENGINE,
    layout=Layout,
    model=ModelTable.from_bytes,
    apply_patch=apply_patch,
    member=member,
    prior=own_prior,
    artifact=policies.load,
    check=policies.check,
    terms=policies.terms,  # outside of which the guard answers in a policy's place
    judge=prediction.judge,  # by every target, those of iterations on average
    savings=savings.savings,
    describe=describe,
    summarise=summarise,
    example=EXAMPLE,
    state_parameters=PARAMETERS,
    prediction=Prediction(prediction.PARAMETERS, prediction.Prediction, prediction.predict),
    training=TrainingOptions(experts=(*HEURISTICS, "planner")),
    views=IterativeViews(),
)
