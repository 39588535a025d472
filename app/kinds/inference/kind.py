"""Kind ``inference`` as the service knows it: requests of users, on model variants, in batches, on servers."""

from collections.abc import Sequence

from app.kinds.contract.kind import Description, Parameter, Prediction, Terms, TrainingOptions, priced
from app.kinds.contract.run_outcome import Ended, Judgement
from app.kinds.contract.views import Views
from app.kinds.forecasting.answer import Forecaster, read
from app.kinds.inference import views as outcome
from app.kinds.inference.awarding import roles
from app.kinds.inference.decision import InferenceDecision, InferenceStart
from app.kinds.inference.engine import ENGINE
from app.kinds.inference.example import EXAMPLE
from app.kinds.inference.heuristics import ALGORITHM
from app.kinds.inference.layout import Layout
from app.kinds.inference.model import PARAMETERS, BatchPrediction, ServiceModel, predict
from app.kinds.inference.policies import check, load
from app.kinds.inference.report import InferenceReport
from app.kinds.inference.samples import InferenceExecution, InferenceSamples
from app.kinds.inference.spec import InferencePatch, InferenceSpec, changed
from app.kinds.inference.views import InferenceViews
from app.policies.artifact import Artifact


class InferenceKind:
    """See ``app.kinds.contract.kind.Kind``."""

    name = "inference"
    spec, patch, start = InferenceSpec, InferencePatch, InferenceStart
    report, decision, execution = InferenceReport, InferenceDecision, InferenceExecution
    samples, engine = InferenceSamples, ENGINE
    state_parameters: tuple[Parameter, ...] = ()
    prediction = Prediction(PARAMETERS, BatchPrediction, predict)
    training = TrainingOptions(own=(ALGORITHM,), online=True, held_out=("executions", "users"), steps_per_second=500.0)
    simulated = True
    example = EXAMPLE
    views: Views | None = InferenceViews()

    def layout(self, spec: InferenceSpec) -> Layout:
        """See ``Kind``."""
        return Layout(spec)

    def roles(self, spec: InferenceSpec) -> tuple[str, ...]:
        """See ``Kind``."""
        return roles(spec)

    def changed(self, spec: InferenceSpec, patch: InferencePatch) -> InferenceSpec:
        """See ``Kind``."""
        return changed(spec, patch)

    def model(self, data: bytes) -> ServiceModel:
        """See ``Kind``."""
        return ServiceModel.from_bytes(data)

    def forecasters(self, model: ServiceModel) -> Sequence[Forecaster]:
        """See ``Kind``: of each user whose log is long enough."""
        return read(model.forecasts) if len(model.forecasts) else ()

    def members(self, spec: InferenceSpec) -> tuple[str, ...]:  # noqa: ARG002
        """See ``Kind``: none."""
        return ()

    def member(self, layout: Layout, model: ServiceModel | None) -> None:
        """See ``Kind``: it can be none."""

    def artifact(self, data: bytes) -> Artifact:
        """See ``Kind``."""
        return load(data)

    def check(self, made: Artifact, layout: Layout) -> None:
        """See ``Kind``."""
        check(made, layout)

    def terms(self, spec: InferenceSpec) -> Terms:
        """See ``Kind``; artifacts do not say what they were made for."""
        return priced({server.name: server.price_per_hour for server in spec.servers}, spec.weights.model_dump())

    def describe(self, spec: InferenceSpec) -> Description:
        """See ``Kind``."""
        servers = ", ".join(f"{s.name} {s.minimum}–{s.maximum} × {s.cores:g} cores" for s in spec.servers)
        variants = ", ".join(variant.name for variant in spec.variants)
        wanted = ", ".join(f"{u.name} within {u.quality.full_until:g} to {u.quality.zero_at:g} s" for u in spec.users)
        return Description(f"{variants} on {servers}", "as long as it is served", wanted)

    def summarise(self, decision: InferenceDecision) -> str:
        """See ``Kind``."""
        count = len(decision.start)
        batches = "1 batch starts" if count == 1 else f"{count} batches start" if count else "nothing starts"
        return f"{batches}; " + ", ".join(f"{name} {servers}" for name, servers in decision.servers.items())

    def judge(self, compiled: object, run: Ended) -> Judgement:  # noqa: ARG002
        """Judge a finished run by the quality of answers to each user."""
        return outcome.judge(run)


KIND = InferenceKind()
