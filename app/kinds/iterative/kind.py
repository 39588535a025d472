"""Kind ``iterative`` as the service knows it: one workload whose allocation changes between its iterations."""

from collections.abc import Mapping, Sequence
from typing import Any

from app.charts.text import number
from app.kinds.contract.engine import DEFAULT_ROLE, Member
from app.kinds.contract.kind import Description, Parameter, Prediction, Terms, TrainingOptions
from app.kinds.contract.run_outcome import Ended, Judgement
from app.kinds.contract.views import Views
from app.kinds.forecasting.answer import Forecaster
from app.kinds.iterative import policies, prediction
from app.kinds.iterative import prediction as outcome
from app.kinds.iterative.compiled import Compiled
from app.kinds.iterative.engine import ENGINE
from app.kinds.iterative.example import EXAMPLE
from app.kinds.iterative.heuristics import HEURISTICS
from app.kinds.iterative.layout import Layout
from app.kinds.iterative.model import ModelTable
from app.kinds.iterative.projection import member
from app.kinds.iterative.query import PARAMETERS
from app.kinds.iterative.report import Decision, IterationReport, IterationRunStart
from app.kinds.iterative.samples import ExecutionRead, IterationSamples
from app.kinds.iterative.spec import IterativePatch, IterativeSpec, Metric, changed
from app.kinds.iterative.views import IterativeViews
from app.policies.artifact import Artifact


class IterativeKind:
    """See ``app.kinds.contract.kind.Kind``."""

    name = "iterative"
    spec, patch, start = IterativeSpec, IterativePatch, IterationRunStart
    report, decision, execution = IterationReport, Decision, ExecutionRead
    samples, engine = IterationSamples, ENGINE
    state_parameters: tuple[Parameter, ...] = PARAMETERS
    prediction: Prediction | None = Prediction(prediction.PARAMETERS, prediction.Prediction, prediction.predict)
    training = TrainingOptions(experts=(*HEURISTICS, "planner"))
    simulated = True
    example = EXAMPLE
    views: Views | None = IterativeViews()

    def layout(self, spec: IterativeSpec) -> Layout:
        """See ``Kind``."""
        return Layout(spec)

    def roles(self, spec: IterativeSpec) -> tuple[str, ...]:  # noqa: ARG002
        """See ``Kind``."""
        return (DEFAULT_ROLE,)

    def changed(self, spec: IterativeSpec, patch: IterativePatch) -> IterativeSpec:
        """See ``Kind``."""
        return changed(spec, patch)

    def model(self, data: bytes) -> ModelTable:
        """See ``Kind``."""
        return ModelTable.from_bytes(data)

    def forecasters(self, model: ModelTable) -> Sequence[Forecaster]:  # noqa: ARG002
        """See ``Kind``: nothing."""
        return ()

    def members(self, spec: IterativeSpec) -> tuple[str, ...]:  # noqa: ARG002
        """See ``Kind``: none."""
        return ()

    def member(self, layout: Layout, model: ModelTable | None) -> Member | None:
        """See ``Kind``."""
        return member(layout, model)

    def artifact(self, data: bytes) -> Artifact:
        """See ``Kind``."""
        return policies.load(data)

    def check(self, made: Artifact, layout: Layout) -> None:
        """See ``Kind``."""
        policies.check(made, layout)

    def terms(self, spec: IterativeSpec) -> Terms:
        """See ``Kind``: those outside of which the guard answers in a policy's place."""
        return policies.terms(spec)

    def terms_made_for(self, spec: IterativeSpec, experience: Mapping[str, Any]) -> Terms:
        """See ``Kind.terms``."""
        return policies.terms(spec, experience)

    def describe(self, spec: IterativeSpec) -> Description:
        """See ``Kind``."""
        targets = [_wanted(metric) for metric in spec.metrics if metric.target is not None]
        resources = ", ".join(f"{r.name} {r.minimum:g}–{r.maximum:g} {r.unit}" for r in spec.resources)
        return Description(resources, f"{spec.iterations:,}", "; ".join(targets))

    def summarise(self, decision: Decision) -> str:
        """See ``Kind``."""
        return ", ".join(f"{name} {value:g}" for name, value in decision.allocation.items())

    def judge(self, compiled: Compiled, run: Ended) -> Judgement:
        """Judge a finished run by every target, those of iterations on average."""
        return outcome.judge(compiled, run)


def _wanted(metric: Metric) -> str:
    sure = f", {100 * metric.probability:g} % sure" if metric.probability is not None else ""
    amount = f"{metric.goal.replace('_', ' ')} {number(metric.target or 0.0)} {metric.unit}".rstrip()
    return f"{metric.name} {amount} per {metric.scope}{sure}"


KIND = IterativeKind()
