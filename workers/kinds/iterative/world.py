"""The world of an ``iterative`` workload: runs may follow another domain model than the one that policies assume."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.contract.policy import Situation
from app.kinds.iterative.heuristics import first_allocation
from app.kinds.iterative.moves import step
from app.kinds.iterative.observation import TERMS, Preferences, preferences_of, reward, terms, view
from app.kinds.iterative.projector import Projector
from app.kinds.iterative.spec import Disturbances
from app.kinds.iterative.state import State, advance, begin, expect, pack
from app.policies.base import RETURN_SCALE
from workers.evaluation.problem import DisturbedWorld
from workers.evaluation.wrappers import Conditions
from workers.kinds.iterative.off_policy import outcome_increments, outcomes_of
from workers.kinds.iterative.simulator import Courses, draw_disturbances, undisturbed_truth, unpack_states
from workers.kinds.iterative.simulator import Truth as RunTruth
from workers.learning.simulator import Step

Array = NDArray[np.float32]


class Truth(NamedTuple):
    """Hidden variables of B runs, which no policy may read.

    Attributes:
        projectors: one for each model that runs may follow.
        model: index into ``projectors`` for each run, [B].
        effect: run effect on the natural log of each metric, [B, M].
    """

    projectors: Sequence[Projector]
    model: NDArray[np.integer]
    effect: Array


class IterativeWorld(DisturbedWorld):
    """The ``World`` of B runs of one workload: M metrics, O outcomes.

    Args:
        projector: the domain model that policies assume. Each run follows one of its members, unless ``compose``
            assigns held-out models.
        held_out: domain models of held-out executions.
        batch: number of runs B.
        seed: until ``reseed`` all B episodes are the same one, drawn from this seed.

    Attributes:
        terms, paid: unscaled terms [B, 3] of the last iteration's reward, and the reward [B].
        outcome_increments: increase of each outcome by the last iteration, [B, O].
        log_factors: natural log of measured over modelled metric in the last iteration, [B, M].
    """

    advice: slice | None = None

    def __init__(self, projector: Projector, held_out: Sequence[Projector], batch: int, seed: int) -> None:
        layout = projector.layout
        super().__init__(batch, seed, len(layout.metrics))
        self.layout, self.projector, self.models = layout, projector, list(held_out)
        self._members = [Projector(layout, projector.table.member(k), np.float32) for k in range(projector.members)]
        self._courses, self._disturbed = Courses(projector.table), layout.spec.disturbances != Disturbances()
        zeros = np.zeros(batch, np.intp)
        self._run_truth = undisturbed_truth(layout, np.zeros((batch, self.channels), np.float32), zeros, zeros)
        self.observation_space, self.action_space = layout.observation_space, layout.action_space
        self.held_out, self.steps = len(self.models), layout.iterations - 1
        self.parameters: Sequence[str] = (
            *(f"target.{m.name}" for m in layout.spec.metrics if m.target is not None),
            *("weight.cost", "weight.change"),
            *(f"price.{name}" for name in layout.resources),
            "effect.spread",
        )
        self.terms = np.zeros((batch, len(TERMS)), np.float32)
        self.paid = np.zeros(batch, np.float32)
        self.outcome_increments: NDArray[np.floating] = np.zeros((batch, len(outcomes_of(layout.spec))))
        self.log_factors: Array = np.zeros((batch, self.channels), np.float32)
        self._state: State | None = None

    @property
    def _followed_projectors(self) -> list[Projector]:
        return self._members if self.model is None else self.models

    @property
    def _model(self) -> NDArray[np.integer]:
        """Index into ``_followed_projectors`` of the model that each run follows, [B]."""
        return self._run_truth.member if self.model is None else self.model

    @property
    def situation(self) -> Situation:
        """What policies read: the domain model that they assume, state, view. Raises RuntimeError before ``reset``."""
        return Situation(self.projector, self.state, self._view)

    @property
    def state(self) -> State:
        """The runs' observable state. Raises RuntimeError before the first ``reset``."""
        if self._state is None:
            raise RuntimeError("reset() comes before the first step")
        return self._state

    @property
    def truth(self) -> Truth:
        """Hidden variables of the B runs, which policies must not read; for optima and tests."""
        return Truth(self._followed_projectors, self._model, self._run_truth.effect)

    def reset(self) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """Begin B runs at the first allocation and simulate one iteration; return observation [B, D] (D entries) and
        mask of legal actions [B, N]."""
        self.renew()
        for disturbance in self.disturbances:
            disturbance.begin(self)
        state = self._initial_states()
        member = course = np.zeros(self.batch, np.intp)
        if len(self._members) > 1:
            drawn = self.random.integers(0, len(self._members), 1 if self.same else self.batch)
            member = np.broadcast_to(drawn, self.batch)
        if self._courses.count:
            course = np.broadcast_to(self._courses.draw(self.random, 1 if self.same else self.batch), self.batch)
        followed = member if self.model is None else self.model
        deviations = np.stack([np.sqrt(p.effect_variance) for p in self._followed_projectors])[followed]
        effect = self._normal() * deviations * self._by_run("effect.spread")
        self._run_truth = undisturbed_truth(self.layout, effect, member, course)
        if self._disturbed and not self.same:
            self._run_truth = draw_disturbances(self.layout, self._run_truth, state.iteration, self.random)
        self._given: Preferences = preferences_of(self.projector, state)
        self._run(state, state.levels, self.conditions())
        return self._view.observation, self._view.mask

    def step(self, actions: NDArray[np.integer]) -> Step:
        """Change allocations by ``actions`` [B] within the capacity, and run one iteration.

        When all runs have ended, the next episodes begin; ``terms``, ``paid`` and ``outcome_increments`` stay those of
        the last step.

        Raises:
            RuntimeError: before the first ``reset``.
        """
        conditions, before = self.conditions(), self.state
        drift = np.stack([np.sqrt(p.drift_variance) for p in self._followed_projectors])
        truth = self._run_truth
        if drift.any():
            truth = truth._replace(effect=truth.effect + self._normal() * drift[self._model])
        self._run_truth = truth.at(before.iteration)
        self._run(before, step(self.layout, before.levels, actions), conditions)
        done = self.state.iteration >= self.layout.iterations
        view, paid = self._view, self.paid
        if done.all():
            last = self.paid, self.terms, self.outcome_increments, self.log_factors
            self.reset()
            self.paid, self.terms, self.outcome_increments, self.log_factors = last
        now = self._view
        return Step(now.observation, now.mask, paid * np.float32(RETURN_SCALE), done, view.observation)

    def get_state(self) -> dict[str, Any]:
        """Return states, hidden variables and random generator by name; raises RuntimeError before ``reset``."""
        return {
            "rows": pack(self.state),
            **self._run_truth._asdict(),
            "model": self._model,
            "composed": self.model is not None,
            "same": self.same,
            "random": self.random.bit_generator.state,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the result of ``get_state``; later steps are bit-identical. Raises KeyError for a missing entry."""
        self._state = unpack_states(self.layout, state["rows"])
        self._run_truth = RunTruth(*(state[part].copy() for part in RunTruth._fields))
        self.same, self.model = state["same"], state["model"].copy() if state["composed"] else None
        self.random = np.random.Generator(np.random.SFC64())
        self.random.bit_generator.state = state["random"]
        self._given = preferences_of(self.projector, self._state)
        self._view = view(self.projector, self._state, self._given)

    def features(self, iteration: NDArray[np.integer]) -> Array:
        """Return the F features of each run in its ``iteration`` [B] (number), [B, F]."""
        return self._courses.at(self._run_truth.course, iteration, self.state.features)

    def _normal(self) -> Array:
        """Draw standard normal numbers, [B, M]; equal for all runs while all episodes are the same one."""
        if self.same:
            return np.tile(self.random.standard_normal((1, self.channels), np.float32), (self.batch, 1))
        return self.random.standard_normal((self.batch, self.channels), np.float32)

    def _initial_states(self) -> State:
        layout, variety = self.layout, 1 if self.same and not self.factors else self.variety
        targets, weights, prices = (
            np.tile(values, (variety, 1)) for values in (layout.targets, layout.weights, layout.prices)
        )
        for name, factors in self.factors.items():
            group, _, detail = name.partition(".")
            if group == "target":
                targets[:, layout.metrics.index(detail)] *= factors
            elif group == "weight":
                weights[:, TERMS.index(detail)] *= factors
            elif group == "price":
                prices[:, layout.resources.index(detail)] *= factors
        table = self.projector.table
        features = self.random.uniform(table.feature_low, table.feature_high, (variety, len(table.feature_low)))
        start = np.tile(layout.start_levels, (variety, 1))
        state = begin(self.projector, start, targets=targets, weights=weights, prices=prices, features=features)
        state = state._replace(levels=first_allocation(self.projector, state))
        which = np.arange(self.batch) % variety
        return State(*(field[which] for field in state))

    def _by_run(self, name: str) -> Array:
        """Return the factor [B, 1] of the parameter ``name`` for each run; 1 where it is not disturbed."""
        factors = self.factors.get(name, np.ones(self.variety))
        return factors[np.arange(self.batch) % self.variety].astype(np.float32)[:, None]

    def _run(self, before: State, wanted: NDArray[np.int16], conditions: Conditions) -> None:
        """Simulate an iteration at ``wanted`` levels [B, R] within capacity; set terms, reward, outcomes and state."""
        projector, seconds = self.projector, self.layout.seconds
        truth = self._run_truth
        most = np.floor(self.layout.tops * conditions.capacity[:, None] + 1e-9).astype(np.int16)
        levels = truth.within(self.layout, np.minimum(wanted, most), before.iteration)
        features = self._courses.at(truth.course, before.iteration, before.features)
        expected = expect(projector, before, levels, features)
        logs, pause, spread = self._followed_logs(before, levels, features)
        conditioned = conditions.slowdown[:, None] + conditions.noise
        self.log_factors = truth.effect + self._normal() * spread + conditioned.astype(np.float32)
        measured = np.exp(logs + self.log_factors)
        measured[:, seconds] *= 1 + conditions.repeated.astype(np.float32)
        measured[:, seconds] += pause
        after = advance(projector, before, levels, measured, features, expected)
        self.terms = terms(projector, before, after, self._given)
        self.paid = reward(before.weights, self.terms)
        self.outcome_increments = outcome_increments(projector, before, after)
        self._state, self._view = after, view(self.projector, after, self._given)

    def _followed_logs(self, before: State, levels: NDArray[np.integer], features: Array) -> tuple[Array, Array, Array]:
        """Return, by the models that runs follow: natural log of each metric's median [B, M], seconds that the change
        of allocation takes [B], and standard deviation of the log noise [B, M]."""
        logs, pause = np.zeros((self.batch, self.channels), np.float32), np.zeros(self.batch, np.float32)
        noise = np.zeros_like(logs)
        for index, projector in enumerate(self._followed_projectors):
            rows = np.flatnonzero(self._model == index)
            there = State(*(field[rows] for field in before))
            logs[rows], pause[rows] = expect(projector, there, levels[rows], features[rows])
            noise[rows] = np.sqrt(projector.noise(there.iteration))
        return logs, pause, noise
