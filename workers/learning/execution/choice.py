"""Which of `serial` and `compiled` runs a training: jax where it is installed, can do it, and is there sooner."""

from workers.learning.algorithms.config import DQN, ActorCritic, Config
from workers.learning.algorithms.config.shared import Place
from workers.learning.backends import available
from workers.learning.described_simulator import SimulatorSpec
from workers.learning.execution.base import Plan

COMPILED_KINDS = frozenset({"iterative"})
COMPILING = 7.6
"""Seconds that compiling takes, about; `benchmarks.jax_speed` measures it, and what the rates below stand for."""
RATES = (65_000.0, 140_000.0)
"""Environment steps a second of a served config, on torch and compiled: what they differ by pays for compiling."""
WORTH = 0.8
"""Share of torch's time that a compiled training may take to be chosen: what is as quick either way stays as it is."""


def settled(name: str, config: Config, simulator: SimulatorSpec, plan: Plan) -> str:
    """Return the executor's name: `compiled` in place of `serial` where the config asks for jax, or leaves it open and
    the training is so long that compiling pays.

    It depends on its arguments and on what is installed alone: whoever resumes a training comes to the same.
    """
    if name != "serial" or not compilable(config, simulator):
        return name
    place = _place(config)
    if place.backend == "jax":
        return "compiled"
    return "compiled" if place.backend == "auto" and place.device != "cuda" and pays(plan) else name


def compilable(config: Config, simulator: SimulatorSpec) -> bool:
    """Whether the whole loop of this training can be compiled here."""
    if "jax" not in available() or simulator.kind not in COMPILED_KINDS:
        return False
    if isinstance(config, DQN):
        return not config.memory.prioritised and config.imitation is None and config.foresight is None
    return isinstance(config, ActorCritic) and not config.recurrent


def pays(plan: Plan) -> bool:
    """Whether compiling is made up for within the plan."""
    torch, compiled = RATES
    seconds = min(plan.steps / torch, plan.seconds or float("inf"))
    return COMPILING + seconds * torch / compiled < WORTH * seconds


def _place(config: Config) -> Place:
    return config.place if isinstance(config, DQN | ActorCritic) else Place()
