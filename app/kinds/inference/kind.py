"""Registration of kind ``inference``: requests of users, served in batches by model variants on servers."""

from collections.abc import Sequence
from typing import Any

from app.charts.text import count_text, exact
from app.kinds.contract.kind import Description, Kind, Prediction, Terms, TrainingOptions, price_terms
from app.kinds.contract.run_outcome import EndedRun, Judgement
from app.kinds.forecasting.answer import Forecaster, deserialise
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
from app.kinds.inference.spec import InferencePatch, InferenceSpec, apply_patch


def forecasters(model: ServiceModel) -> Sequence[Forecaster]:
    """Return a forecaster of each user's requests; empty if no log is long enough.

    Raises IncompatibleModel if the model's can't be read."""
    return deserialise(model.forecasts) if len(model.forecasts) else ()


def terms(spec: InferenceSpec) -> Terms:
    """Return a spec's terms: prices per server-hour by class, and weights of the objective."""
    return price_terms({server.name: server.price_per_hour for server in spec.servers}, spec.weights.model_dump())


def judge(compiled: Any, run: EndedRun) -> Judgement:  # noqa: ARG001
    """Judge a finished run by the mean quality (0 to 1) of recent answers to each user."""
    return views.judge(run)


def describe(spec: InferenceSpec) -> Description:
    """Describe a spec in a few words: variants on servers, duration, and response times in seconds by user."""
    servers = ", ".join(
        f"{count_text(s.minimum, f'{s.name} server', s.maximum)} of {count_text(s.cores, 'core')}" for s in spec.servers
    )
    variants = ", ".join(variant.name for variant in spec.variants)
    wanted = "; ".join(
        f"{u.name}: full quality within {exact(u.quality.full_until)} s, none after {exact(u.quality.zero_at)} s"
        for u in spec.users
    )
    most = " or ".join(server.name for server in spec.servers)
    remedy = f"raise the maximum of {most}, or allow users longer response times"
    return Description(f"{variants} on {servers}", "no fixed length", wanted, remedy)


def summarise(decision: InferenceDecision) -> str:
    """Summarise a decision in a line: number of batches that start, and of servers per class."""
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
    apply_patch=apply_patch,
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
