"""A planted workload whose domain model is known."""

from dataclasses import replace
from typing import Any

import numpy as np

from app.kinds.iterative.layout import Layout
from app.kinds.iterative.model import ModelTable, initial_table
from app.kinds.iterative.spec import Spec


def planted_spec(**changes: Any) -> Spec:
    """Thirty iterations on 4 to 36 executors against a deadline."""
    spec: dict[str, Any] = {
        "name": "planted",
        "resources": [
            {"name": "executors", "minimum": 4, "maximum": 36, "max_steps": 4, "change_seconds": 2.0, "initial": 8}
        ],
        "metrics": [{"name": "iteration_seconds", "unit": "s", "target": 330.0, "scope": "run"}],
        "iterations": 30,
    }
    return Spec.model_validate(spec | changes)


def planted_table(spec: Spec, *, effect: float = 0.15, noise: float = 0.15, drift: float = 0.0) -> ModelTable:
    """Seconds = 2 + 60/a + a/10 over the sum a of all resources; any other metric is constant at 1."""
    layout = Layout(spec)
    table = initial_table(layout)
    log_mean = np.zeros_like(table.log_mean)
    total = layout.allocations.sum(axis=1)
    log_mean[layout.seconds, :, :, :] = np.log(2 + 60 / total + 0.1 * total)[:, None, None]
    every = np.ones(len(layout.metrics))
    return replace(
        table,
        log_mean=log_mean,
        effect_sd=effect * every,
        noise_sd=noise * every,
        drift_sd=drift * every,
        marginal_low=-1.645 * np.hypot(effect, noise) * every,
        marginal_high=1.645 * np.hypot(effect, noise) * every,
        residual_low=-1.645 * noise * every,
        residual_high=1.645 * noise * every,
        informed=True,
    )
