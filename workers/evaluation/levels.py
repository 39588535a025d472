"""The levels of the evaluation: sources of non-determinism, switched on one after another.

After the progressive randomisation of Schaarschmidt's work on RL for systems: an agent that is good at one level only
has learned that level's accidents.
"""

from enum import IntEnum


class Level(IntEnum):
    """What is random; each level includes those before it. ``TRAIN`` is no level of the class: see ``TITLES``."""

    TRAIN = -1
    FIXED = 0
    SEEDS = 1
    PARAMETERS = 2
    COMPOSITION = 3
    ENVIRONMENT = 4

    @property
    def label(self) -> str:
        """``train``, or ``L0`` to ``L4``."""
        return "train" if self is Level.TRAIN else f"L{int(self)}"


CLASSES = tuple(level for level in Level if level is not Level.TRAIN)

TITLES = {
    Level.TRAIN: ("training distribution", "As L1, under seeds that no test uses."),
    Level.FIXED: ("everything fixed", "One episode, the same for everybody and every time: learning as optimisation."),
    Level.SEEDS: ("seeds and order", "What a seed decides: the run's effect, its features, its noise, the order."),
    Level.PARAMETERS: ("parameters", "Targets, weights, prices and the spread of run effects change too."),
    Level.COMPOSITION: ("composition", "Episodes follow a model of executions that were held out."),
    Level.ENVIRONMENT: ("environment", "Heavier noise, drift, lost capacity and failures come on top."),
}
