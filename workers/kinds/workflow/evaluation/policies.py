"""Policies of a world in which an action is a way of scheduling."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from app.kinds.contract.policy import Choice, Situation
from workers.kinds.workflow.evaluation.schedulers import EpisodeScheduler
from workers.kinds.workflow.evaluation.world import WorkflowWorld


@dataclass(frozen=True)
class Always:
    """One of the numbered ways, always."""

    number: int
    name: str

    def act(self, situation: Situation) -> Choice:
        """See ``Policy``."""
        return Choice(np.full(len(situation.view.mask), self.number))


@dataclass
class SchedulerPolicy:
    """A way of its own, that takes part in a world once it has watched it."""

    scheduler: EpisodeScheduler
    _number: int | None = field(default=None, repr=False)

    @property
    def name(self) -> str:
        """The way's."""
        return self.scheduler.name

    def watch(self, world: WorkflowWorld) -> None:
        """Take part in ``world``."""
        self._number = world.add_scheduler(self.scheduler)

    def act(self, situation: Situation) -> Choice:
        """See ``Policy``."""
        if self._number is None:
            raise RuntimeError("watch() comes before act()")
        return Choice(np.full(len(situation.view.mask), self._number))


class Hindsight:
    """The numbered way that will turn out best in each episode; it is told everything that is to come."""

    name = "hindsight"

    def act(self, situation: Situation) -> Choice:
        """See ``Policy``; ``values`` are the returns that there will be."""
        world, shape = situation.state, situation.view.mask.shape
        values: NDArray[np.float64] = np.array([[world.value(b, n) for n in range(shape[1])] for b in range(shape[0])])
        return Choice(values.argmax(axis=1), values)
