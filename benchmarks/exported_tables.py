"""What a service that was given a data set's measurements answers to ``/predict``: its exported table, not a family."""

from __future__ import annotations

import numpy as np

from app.kinds.iterative.announced import announced_iterations
from app.kinds.iterative.layout import Layout
from app.kinds.iterative.model import ModelTable
from app.kinds.iterative.projector import Projector
from app.kinds.iterative.reasons import next_iteration
from app.kinds.iterative.spec import Spec
from app.kinds.iterative.state import begin
from benchmarks.domain_data import Mask, Measurements
from workers.estimators.base import Floats, Prediction
from workers.kinds.iterative.fit import fit_domain_model
from workers.kinds.iterative.grid import Executions


def spec_of(m: Measurements) -> Spec:
    """A workload of one iteration whose allocations and features are those of ``m``."""
    count = len(m.inputs.resources)
    resources = [
        {"name": name, "minimum": float(column.min()), "maximum": float(column.max()), "step": _step(column)}
        for name, column in zip(m.inputs.resources, m.X[:, :count].T, strict=True)
    ]
    features = [
        {"name": name, "minimum": float(column.min()) - 1e-9, "maximum": float(column.max()) + 1e-9}
        for name, column in zip(m.inputs.features, m.X[:, count:].T, strict=True)
    ]
    return Spec.model_validate({"name": "measured", "resources": resources, "features": features, "iterations": 1})


def fitted(m: Measurements, learn: Mask, seed: int) -> tuple[ModelTable, str]:
    """The table that is exported after the rows ``learn`` [n], and the family behind it."""
    rows = np.column_stack(
        [np.zeros(len(m.X)), m.X[:, : len(m.inputs.resources)], m.seconds, m.X[:, len(m.inputs.resources) :]]
    )
    names = np.unique(m.groups[learn])
    items = tuple((f"run-{name}", rows[learn & (m.groups == name)]) for name in names)
    domain_model = fit_domain_model(spec_of(m), Executions(items), seed)
    return domain_model.table, str(domain_model.report["family"])


def answers(m: Measurements, table: ModelTable, rows: Mask) -> Prediction:
    """What is answered for ``rows`` [n]: mean and interval of a run's first iteration."""
    layout = Layout(spec_of(m))
    projector, count = Projector(layout, table), len(layout.resources)
    units, features = m.X[rows, :count], m.X[rows, count:]
    levels = np.rint((units - projector.minima) / projector.steps).astype(np.int16)
    state = begin(projector, levels, features=features)._replace(upcoming=features[:, None])
    known = announced_iterations(projector, state)
    mean, low, high = next_iteration(projector, state, layout.index(levels), known, np.zeros(len(levels)))
    return Prediction(*(np.asarray(values[:, 0], np.float64) for values in (mean, low, high)))


def _step(column: Floats) -> float:
    """The coarsest grid that all values lie on."""
    return float(np.gcd.reduce(np.rint(np.diff(np.unique(column))).astype(int)))
