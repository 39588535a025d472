"""Kind ``inference`` as the service knows it: requests of users, on model variants, in batches, on servers."""

from collections.abc import Sequence
from typing import Any

from app.kinds.contract.kind import Description, Kind, Prediction, Terms, TrainingOptions, priced
from app.kinds.contract.run_outcome import Ended, Judgement
from app.kinds.forecasting.answer import Forecaster, read
from app.kinds.inference import views
from app.kinds.inference.awarding import roles
from app.kinds.inference.decision import InferenceDecision, InferenceStart
from app.kinds.inference.engine import ENGINE
from app.kinds.inference.example import EXAMPLE
from app.kinds.inference.heuristics import ALGORITHM
from app.kinds.inference.layout import Layout
from app.kinds.inference.model import PARAMETERS, BatchPrediction, ServiceModel, predict
from app.kinds.inference.policies import check, load
from app.kinds.inference.samples import InferenceExecution, InferenceSamples
from app.kinds.inference.spec import InferencePatch, InferenceSpec, changed


def forecasters(model: ServiceModel) -> Sequence[Forecaster]:
    """The load of each user whose log is long enough."""
    return read(model.forecasts) if len(model.forecasts) else ()


def terms(spec: InferenceSpec) -> Terms:
    """Prices of server classes and weights of the goals."""
    return priced({server.name: server.price_per_hour for server in spec.servers}, spec.weights.model_dump())


def judge(compiled: Any, run: Ended) -> Judgement:  # noqa: ARG001
    """Whether a finished run met its targets, by the quality of the answers to each user."""
    return views.judge(run)


def describe(spec: InferenceSpec) -> Description:
    """A spec in a few words."""
    servers = ", ".join(f"{s.name} {s.minimum}–{s.maximum} × {s.cores:g} cores" for s in spec.servers)
    variants = ", ".join(variant.name for variant in spec.variants)
    wanted = ", ".join(f"{u.name} within {u.quality.full_until:g} to {u.quality.zero_at:g} s" for u in spec.users)
    return Description(f"{variants} on {servers}", "as long as it is served", wanted)


def summarise(decision: InferenceDecision) -> str:
    """How many batches a decision starts, and the servers of each class."""
    count = len(decision.start)
    batches = "1 batch starts" if count == 1 else f"{count} batches start" if count else "nothing starts"
    return f"{batches}; " + ", ".join(f"{name} {servers}" for name, servers in decision.servers.items())


KIND = Kind(
    name="inference",
    spec=InferenceSpec,
    patch=InferencePatch,
    start=InferenceStart,
    decision=InferenceDecision,
    execution=InferenceExecution,
    samples=InferenceSamples,
    engine=ENGINE,
    layout=Layout,
    model=ServiceModel.from_bytes,
    changed=changed,
    roles=roles,
    forecasters=forecasters,
    artifact=load,
    check=check,
    terms=terms,
    judge=judge,
    describe=describe,
    summarise=summarise,
    example=EXAMPLE,
    prediction=Prediction(PARAMETERS, BatchPrediction, predict),
    training=TrainingOptions(own=(ALGORITHM,), online=True, held_out=("executions", "users"), steps_per_second=500.0),
    views=views.InferenceViews(),
)
