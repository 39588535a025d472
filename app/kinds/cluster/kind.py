"""Kind ``cluster`` as the service knows it: training jobs of several priorities, on the GPUs of some nodes."""

from collections.abc import Sequence

from app.kinds.cluster import views as outcome
from app.kinds.cluster.decide import Compiled
from app.kinds.cluster.decision import ClusterDecision, ClusterStart
from app.kinds.cluster.engine import ENGINE
from app.kinds.cluster.example import EXAMPLE
from app.kinds.cluster.layout import Layout
from app.kinds.cluster.model import PARAMETERS, ClusterModel, ClusterPrediction, predict
from app.kinds.cluster.policies import WITH_MODEL, load
from app.kinds.cluster.report import ClusterReport
from app.kinds.cluster.samples import ClusterExecution, ClusterSamples
from app.kinds.cluster.spec import ClusterPatch, ClusterSpec, changed
from app.kinds.cluster.views import ClusterViews
from app.kinds.contract.engine import DEFAULT_ROLE
from app.kinds.contract.kind import Description, Parameter, Prediction, Terms, TrainingOptions, priced
from app.kinds.contract.run_outcome import Ended, Judgement
from app.kinds.contract.views import Views
from app.kinds.forecasting.answer import Forecaster
from app.policies.artifact import Artifact


class ClusterKind:
    """See ``app.kinds.contract.kind.Kind``."""

    name = "cluster"
    spec, patch, start = ClusterSpec, ClusterPatch, ClusterStart
    report, decision, execution = ClusterReport, ClusterDecision, ClusterExecution
    samples, engine = ClusterSamples, ENGINE
    state_parameters: tuple[Parameter, ...] = ()
    prediction = Prediction(PARAMETERS, ClusterPrediction, predict)
    training = TrainingOptions(experts=(WITH_MODEL,), steps_per_second=500.0)
    simulated = True
    example = EXAMPLE
    views: Views | None = ClusterViews()

    def layout(self, spec: ClusterSpec) -> Layout:
        """See ``Kind``."""
        return Layout(spec)

    def roles(self, spec: ClusterSpec) -> tuple[str, ...]:  # noqa: ARG002
        """See ``Kind``: one."""
        return (DEFAULT_ROLE,)

    def changed(self, spec: ClusterSpec, patch: ClusterPatch) -> ClusterSpec:
        """See ``Kind``."""
        return changed(spec, patch)

    def model(self, data: bytes) -> ClusterModel:
        """See ``Kind``."""
        return ClusterModel.from_bytes(data)

    def forecasters(self, model: ClusterModel) -> Sequence[Forecaster]:
        """See ``Kind``: of the jobs that come to each queue."""
        return model.forecasters()

    def members(self, spec: ClusterSpec) -> tuple[str, ...]:
        """See ``Kind``: workloads whose runs are jobs."""
        return spec.members

    def member(self, layout: Layout, model: ClusterModel | None) -> None:
        """See ``Kind``: it can be none."""

    def artifact(self, data: bytes) -> Artifact:
        """See ``Kind``."""
        return load(data)

    def check(self, made: Artifact, layout: Layout) -> None:
        """See ``Kind``."""
        made.check(self.name, layout.entries, layout.actions)

    def terms(self, spec: ClusterSpec) -> Terms:
        """See ``Kind``; artifacts do not say what they were made for."""
        return priced({node.name: node.price_per_hour for node in spec.nodes}, spec.weights.model_dump())

    def describe(self, spec: ClusterSpec) -> Description:
        """See ``Kind``."""
        nodes = ", ".join(f"{one.count} × {one.gpus} GPUs {one.name}" for one in spec.nodes)
        queues = ", ".join(f"{one.name} (weight {one.weight:g})" for one in spec.queues)
        return Description(nodes, "as long as jobs come", f"completion times of {queues}")

    def summarise(self, decision: ClusterDecision) -> str:
        """See ``Kind``."""
        count = len(decision.changes)
        changes = "nothing changes" if not count else "1 job changes" if count == 1 else f"{count} jobs change"
        return f"{changes}; {decision.running} run, {decision.waiting} wait, {decision.free} GPUs are free"

    def judge(self, compiled: Compiled, run: Ended) -> Judgement:
        """Judge a finished run by the deadlines of jobs that are runs of members."""
        return outcome.judge(compiled, run)


KIND = ClusterKind()
