"""How agents of kind `cluster` are trained in benchmarks: PPO in one process, after imitating the rule ``soonest``."""

from typing import Any

import numpy as np

from app.kinds.cluster.layout import Layout
from app.kinds.cluster.policies import FAMILIES
from app.policies.base import Published
from workers.evaluation.statistics import Level
from workers.evaluation.wrappers import wrap_world
from workers.inputs import Conditions
from workers.kinds.cluster.episodes import Source
from workers.kinds.cluster.kind import CLONING_ENTROPY
from workers.kinds.cluster.world import ClusterWorld, RulePolicy
from workers.learning.execution.serial import Plan, Serial
from workers.learning.simulator import demonstrate
from workers.learning.training.request import Request, config_for

ENVIRONMENTS, SHOWN = 256, 64


def trained(layout: Layout, source: Source, steps: int, seed: int) -> Published:
    """What PPO learns in so many steps."""

    def world(batch: int, of: int) -> Any:
        return wrap_world(ClusterWorld(layout, source, Conditions(batch, of, "learning")), Level.TRAIN, of)

    config = config_for("ppo", Request("ppo", steps), (), cloning_entropy=CLONING_ENTROPY)
    runner = Serial(config, world(ENVIRONMENTS, 2 * seed), Plan(steps, 1 << 17), seed)
    shown = demonstrate(world(SHOWN, 2 * seed + 1), RulePolicy("soonest"), layout.spec.episode_intervals)
    runner.agent.imitate(shown, np.random.default_rng(seed))
    while not runner.done:
        runner.advance()
    kind, described, arrays = runner.agent.export()
    return FAMILIES[kind].build({"algorithm": "ppo", **described}, dict(arrays))
