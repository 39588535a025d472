"""Sound policies and domain models, as they are published."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from app.kinds.cluster.layout import Layout as ClusterLayout
from app.kinds.cluster.model import ClusterModel
from app.kinds.inference.layout import Layout as InferenceLayout
from app.kinds.inference.model import ServiceModel
from app.kinds.iterative.layout import Layout as IterativeLayout
from app.kinds.iterative.model import initial_table
from app.kinds.registry import KINDS, layout_of, parse_spec
from app.kinds.workflow.policies import SHIPPED
from app.kinds.workflow.run_times import Predictor
from app.policies.artifact import TablePolicy, save, save_roles
from app.policies.base import Published
from app.policies.network import NetworkPolicy

HIDDEN = 8


def _layout(kind: str) -> Any:
    return layout_of(parse_spec(KINDS[kind].example.spec))


def _network(entries: int, actions: int, units: int) -> NetworkPolicy:
    rng = np.random.default_rng(0)
    shapes = {"trunk.0": (HIDDEN, entries + units), "advantage": (actions, HIDDEN), "value": (1, HIDDEN)}
    shapes |= {"core.input": (3 * units, entries), "core.memory": (3 * units, units)} if units else {}
    arrays: dict[str, Any] = {f"{n}.weight": rng.normal(size=s).astype(np.float32) for n, s in shapes.items()}
    arrays |= {f"{n}.bias": rng.normal(size=s[0]).astype(np.float32) for n, s in shapes.items()}
    config = {"layers": [HIDDEN], "activation": "relu", "dueling": True, "advice": [0, 1], "recurrent": units}
    return NetworkPolicy.build({"algorithm": "dqn", **config}, arrays)


def policies() -> Sequence[bytes]:
    """Networks, one of which remembers, a table, two that were trained together, and a scheduler."""
    layout: IterativeLayout = _layout("iterative")
    names, actions = layout.observation_names, len(layout.deltas)
    config = {"algorithm": "q_table", "entries": [0, 2], "low": [0.0, -1.0], "high": [1.0, 1.0], "bins": [4, 3]}
    table = TablePolicy.build(config, {"q": np.zeros((12, actions))})
    single: list[Published] = [*(_network(len(names), actions, units) for units in (0, 4)), table]
    shared: InferenceLayout = _layout("inference")
    role = save(_network(len(shared.entries), shared.actions, 0), "inference", shared.entries, shared.actions, {})
    return [
        *(save(one, "iterative", names, actions, {}) for one in single),
        save_roles({"shop": role, "archive": role}),
        SHIPPED.read_bytes(),
    ]


def models() -> Mapping[str, Sequence[bytes]]:
    """A domain model of each kind."""
    shared: InferenceLayout = _layout("inference")
    cluster: ClusterLayout = _layout("cluster")
    users, variants, batches = shared.shape
    classes = len(shared.servers)
    seconds, measured = np.zeros((1, classes, variants, batches)), np.ones((classes, variants), np.bool_)
    served = ServiceModel(seconds, np.zeros(variants), np.ones((users, 1)), np.zeros(users), measured)
    return {
        "iterative": [initial_table(_layout("iterative")).to_bytes()],
        "inference": [served.to_bytes()],
        "cluster": [ClusterModel.unfitted(cluster).to_bytes()],
        "workflow": [Predictor("ratio", 60.0, 0.5, {"ann": 0.4, "bob": 1.0}).to_bytes()],
    }
