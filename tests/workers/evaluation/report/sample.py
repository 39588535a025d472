"""An evaluation's JSON as the protocol gives it, with made-up figures, for any names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Json = dict[str, Any]
HEURISTICS = ("threshold", "model_predictive")
TITLES = {
    "train": "training distribution",
    "L0": "everything fixed",
    "L1": "seeds and order",
    "L2": "parameters",
    "L3": "composition",
    "L4": "environment",
}
UNAVAILABLE = "too few executions to hold some out: needs 3 executions at 3 allocations; has 2 at 2"


def interval(mean: float, half: float = 0.002) -> Json:
    return {"mean": mean, "low": mean - half, "high": mean + half}


OUTCOMES = [{"name": "missed deadlines", "unit": "share"}, {"name": "GPU-hours", "unit": ""}]


def scores(value: float, advantage: float) -> Json:
    return {
        "outcomes": {"missed deadlines": interval(0.042), "GPU-hours": interval(3.14, 0.02)},
        "return": interval(value),
        "iqm": interval(value + 0.001),
        "terms": {"sla": 0.01, "cost": 0.9, "change": 0.1},
        "guarded": 0.02,
        "advantage": interval(advantage),
        "probability_of_improvement": interval(0.5 + advantage, 0.01),
        "normalised": 1 + advantage,
    }


def level(name: str, candidates: Sequence[str]) -> Json:
    level: Json = {
        "level": name,
        "title": TITLES[name],
        "description": f"What {name} makes random.",
        "wrappers": ["seeds"],
        "available": name != "L3",
        "reason": UNAVAILABLE if name == "L3" else None,
        "episodes": 1280,
        "best_heuristic": None,
        "optimum": {
            "available": False,
            "exact": False,
            "policy": None,
            "expected": None,
            "error": None,
            "reason": "no",
        },
        "policies": {},
    }
    if name != "L3":
        level["best_heuristic"] = "model_predictive"
        level["policies"] = {
            "threshold": scores(-0.14, -0.03),
            "model_predictive": scores(-0.11, 0.0),
            "random": {**scores(-0.4, -0.29), "guarded": None, "normalised": None},
            **{who: scores(-0.105 - 0.01 * i, 0.005 - 0.01 * i) for i, who in enumerate(candidates)},
        }
    return level


def candidate(name: str, index: int) -> Json:
    advantage = 0.005 - 0.01 * index
    levels = [
        {
            "level": one,
            "passed": one != "L3" and advantage > 0,
            "reason": UNAVAILABLE if one == "L3" else f"the interval begins at {advantage - 0.002:+.4f}",
            "advantage": None if one == "L3" else interval(advantage),
            "probability_of_improvement": None if one == "L3" else interval(0.6, 0.01),
            "gap": None if one == "L3" else {"return": interval(0.01), "advantage": interval(-0.001)},
            "gap_to_optimum": None,
        }
        for one in ("L0", "L1", "L2", "L3", "L4")
    ]
    return {
        "name": name,
        "class": "none" if index else "L2",
        "verdict": f"{name} is at least as good as the best heuristic up to there.",
        "levels": levels,
        "heat_map": {
            "x": {"name": "progress", "edges": [0.0, 0.5, 1.0]},
            "y": {"name": "time left", "edges": [-1.0, 0.0, 1.0]},
            "value": {"name": "change", "mean": [[0.5, None], [-0.25, 0.0]]},
            "count": [[3, 0], [2, 4]],
        },
        "aliasing": {
            "checked": True,
            "reason": None,
            "labels": "model_predictive",
            "encoder": "float32",
            "states": 20000,
            "observations": 19998,
            "conflicting_observations": 1,
            "conflicting_states": 2,
            "value_lost": 0.0001,
            "share_lost": 0.001,
            "aliased": False,
            "examples": [
                {"observation": {"a": 0.5}, "states": 2, "actions": {"+1 gpus": 1, "stay": 1}, "value_lost": 1e-4}
            ],
        },
        "curve": [[0, -0.3], [1000, -0.2], [2000, -0.12]],
    }


def report(*candidates: str, workload: str = "resnet18") -> Json:
    """An evaluation of these candidates: the first is of class L2, the others of none."""
    names = candidates or ("agent 3",)
    roles = [*((n, "candidate") for n in names), *((n, "heuristic") for n in HEURISTICS), ("random", "random")]
    tau = [0.0, 0.5, 1.0]
    band = {"share": [1.0, 0.9, 0.5], "low": [0.99, 0.88, 0.45], "high": [1.0, 0.92, 0.55]}
    return {
        "schema": "steward.evaluation/1",
        "kind": "iterative",
        "workload": workload,
        "settings": {"seeds": 5, "episodes": 256, "seed": 0, "confidence": 0.95, "trials": 40},
        "outcomes": OUTCOMES,
        "terms": ["sla", "cost", "change"],
        "term_weights": {"sla": 1.0, "cost": 0.1, "change": 0.01},
        "levels": [level(one, names) for one in TITLES],
        "policies": [{"name": n, "role": role, "title": "dqn" if role == "candidate" else n} for n, role in roles],
        "candidates": [candidate(name, index) for index, name in enumerate(names)],
        "profiles": [{"level": "L1", "tau": tau, "policies": {name: band for name, _ in roles}}],
        "tuner": {
            "trials": 40,
            "seconds": 1.2,
            "settings": {"gpus": 6},
            "return": -0.121,
            "history": [[0, -0.3], [1, -0.121]],
            "reason": None,
        },
        "seconds": 41.2,
    }
