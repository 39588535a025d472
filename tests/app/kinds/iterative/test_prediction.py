"""``/predict`` answers what a decision would promise."""

from dataclasses import replace

import numpy as np
import pytest

from app.kinds.iterative.layout import Layout
from app.kinds.iterative.model import ModelTable
from app.kinds.iterative.prediction import predict
from app.kinds.iterative.query import beginning
from tests.app.kinds.iterative.decisions.deciding import begun, compiled
from tests.planted import planted_spec, planted_table

SPEC = planted_spec(features=[{"name": "batch", "minimum": 32, "maximum": 512}])
NODES = np.array([32.0, 512.0])


def believed() -> ModelTable:
    plain = planted_table(SPEC)
    logs = (plain.log_mean + np.log(NODES / 128)[:, None]).astype(np.float32)
    members = np.random.default_rng(0).normal(0.1, 0.05, (8, *logs.shape)).astype(np.float32)
    courses = np.full((1, 30, 1), 500, np.float32)
    return replace(plain, log_mean=logs, feature_nodes=(NODES,), members=members, courses=courses)


def test_it_is_the_promise_of_a_runs_first_decision() -> None:
    table = believed()
    on = compiled(SPEC, table)
    decided = begun(on, beginning(on, {}, {"batch": 100}, {}))
    units = decided["allocation"]["executors"]
    query = {"allocation": [f"executors:{units:g}"], "feature": ["batch:100"]}
    answered = predict(Layout(SPEC), table, query)["predicted"]["iteration_seconds"]
    assert answered.model_dump() == pytest.approx(decided["predicted"]["iteration_seconds"])


def test_it_interpolates_between_features_and_asks_the_whole_belief() -> None:
    table = believed()
    query = {"allocation": ["executors:10"], "feature": ["batch:128"]}
    iteration_seconds = predict(Layout(SPEC), table, query)["predicted"]["iteration_seconds"]
    middle = np.log(2 + 60 / 10 + 1) + np.asarray(table.members)[:, 0, 6, :, 0].mean()
    assert np.log(iteration_seconds.mean) == pytest.approx(middle + 0.15**2 / 2, abs=1e-3)
    alone = predict(Layout(SPEC), replace(table, members=None), query)["predicted"]["iteration_seconds"]
    assert iteration_seconds.high / iteration_seconds.low > alone.high / alone.low
