"""Kind ``workflow`` as the service knows it: batch jobs and workflow DAGs on priced nodes."""

from collections.abc import Sequence

from app.kinds.contract.engine import DEFAULT_ROLE
from app.kinds.contract.kind import Description, Parameter, Prediction, RunStart, Terms, TrainingOptions, priced
from app.kinds.contract.run_outcome import Ended, Judgement
from app.kinds.contract.views import Views
from app.kinds.forecasting.answer import Forecaster
from app.kinds.workflow import policies
from app.kinds.workflow import views as outcome
from app.kinds.workflow.engine import ENGINE
from app.kinds.workflow.example import EXAMPLE
from app.kinds.workflow.queue import Layout, QueueReport
from app.kinds.workflow.report import QueueDecision
from app.kinds.workflow.run_times import Predictor
from app.kinds.workflow.sample_schemas import TraceExecution
from app.kinds.workflow.samples import TraceSamples
from app.kinds.workflow.spec import WorkflowPatch, WorkflowSpec, changed
from app.kinds.workflow.views import WorkflowViews
from app.policies.artifact import Artifact


class WorkflowKind:
    """See ``app.kinds.contract.kind.Kind``."""

    name = "workflow"
    spec, patch, start = WorkflowSpec, WorkflowPatch, RunStart
    report, decision, execution = QueueReport, QueueDecision, TraceExecution
    samples, engine = TraceSamples, ENGINE
    state_parameters: tuple[Parameter, ...] = ()
    prediction: Prediction | None = None
    training = TrainingOptions(
        ("auto",), ("seeds", "executor", "backend", "start_from", "imitate"), steps_per_second=80_000.0
    )
    simulated = False
    example = EXAMPLE
    views: Views | None = WorkflowViews()

    def layout(self, spec: WorkflowSpec) -> Layout:
        """See ``Kind``."""
        return Layout(spec)

    def roles(self, spec: WorkflowSpec) -> tuple[str, ...]:  # noqa: ARG002
        """See ``Kind``."""
        return (DEFAULT_ROLE,)

    def changed(self, spec: WorkflowSpec, patch: WorkflowPatch) -> WorkflowSpec:
        """See ``Kind``."""
        return changed(spec, patch)

    def model(self, data: bytes) -> Predictor:
        """See ``Kind``."""
        return Predictor.from_bytes(data)

    def forecasters(self, model: Predictor) -> Sequence[Forecaster]:  # noqa: ARG002
        """See ``Kind``: nothing."""
        return ()

    def members(self, spec: WorkflowSpec) -> tuple[str, ...]:  # noqa: ARG002
        """See ``Kind``: none."""
        return ()

    def member(self, layout: Layout, model: Predictor | None) -> None:
        """See ``Kind``: it can be none."""

    def artifact(self, data: bytes) -> Artifact:
        """See ``Kind``."""
        return policies.artifact(data)

    def check(self, made: Artifact, layout: Layout) -> None:
        """See ``Kind``."""
        policies.check(made, layout)

    def terms(self, spec: WorkflowSpec) -> Terms:
        """See ``Kind``; artifacts do not say what they were made for."""
        return priced({node.name: node.price_per_hour for node in spec.nodes}, spec.weights.model_dump())

    def describe(self, spec: WorkflowSpec) -> Description:
        """See ``Kind``."""
        nodes = ", ".join(f"{n.name} {n.minimum}–{n.maximum} × {n.processors} processors" for n in spec.nodes)
        wanted = [f"{name} {weight:g}" for name, weight in spec.weights.model_dump().items() if weight]
        return Description(nodes, "as long as tasks come", "; ".join(wanted))

    def summarise(self, decision: QueueDecision) -> str:
        """See ``Kind``."""
        started = len(decision.placements)
        return "1 task starts" if started == 1 else f"{started} tasks start" if started else "nothing starts"

    def judge(self, compiled: object, run: Ended) -> Judgement:  # noqa: ARG002
        """Judge a finished run by the deadlines of tasks."""
        return outcome.judge(run)


KIND = WorkflowKind()
