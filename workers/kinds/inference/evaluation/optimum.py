"""The exact optimum of small queues on one server, by policy iteration of a semi-Markov decision process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import factorial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.inference.layout import WAIT, Layout
from app.kinds.inference.model import ServiceModel
from app.policies.artifact import TablePolicy, cell

Floats = NDArray[np.float64]
LARGEST_QUEUE = 12
NODES = 5  # of Gauss–Hermite quadrature
ROUNDS, PRECISE = 100, 1e-9
BINS = 64  # on a logarithmic scale, enough to distinguish queues of up to ``LARGEST_QUEUE``
WORST = -1e6  # value of illegal actions
SURE = 3.0  # safety factor on the seconds that full queues take


class Intractable(ValueError):
    """The optimum of a workload can't be computed; the message says why."""


class Outcome(NamedTuple):
    """The expected consequence of an action in one of S states.

    Attributes:
        action: number of the action.
        loss: expected weighted loss by lower quality, drops and switching.
        seconds: expected seconds until the next decision.
        chance: probability of each next state, [S].
    """

    action: int
    loss: float
    seconds: float
    chance: Floats


@dataclass(frozen=True, eq=False)
class Solution:
    """The optimum, with average loss per second as criterion.

    Attributes:
        states: queue lengths of U users and loaded variant (number of variants: none), [S, U + 1].
        values: loss of each action relative to the best one, at least 0; ∞ where illegal, [S, N].
        loss: loss per second.
        rate: requests per second.
        delays: largest time to serve full queues, as a share of ``full_until``, the delay up to which quality is full.
    """

    states: NDArray[np.int64]
    values: Floats
    loss: float
    rate: float
    delays: float

    @property
    def exact(self) -> bool:
        """Whether delays certainly cost nothing: full queues are served within a third of the delay of full quality."""
        return self.delays <= 1 / SURE

    def details(self) -> dict[str, Any]:
        """Return the report's entries: ``loss_per_request``, number of ``states``, share ``truncated`` (0), and
        ``delays`` as ``queue_over_full_until``."""
        return {
            "loss_per_request": self.loss / self.rate,
            "states": len(self.states),
            "truncated": 0.0,
            "queue_over_full_until": self.delays,
        }

    def policy(self, layout: Layout) -> TablePolicy:
        """Make the policy: a table over queue lengths and the loaded variant, whose values are negative losses."""
        users, variants, _ = layout.shape
        entries = [*range(users), *(layout.entries.index(f"loaded.{name}") for name in layout.variants)]
        config = {
            "algorithm": "optimum",
            "entries": entries,
            "low": [0.0] * len(entries),
            "high": [1.0] * len(entries),
            "bins": [BINS] * users + [2] * variants,
            "advice": None,
        }
        observation = np.zeros((len(self.states), len(layout.entries)), np.float32)
        observation[:, :users] = np.log1p(self.states[:, :users]) / np.log1p(layout.spec.queue_limit)
        observation[:, entries[users:]] = self.states[:, users, None] == np.arange(variants)
        q = np.zeros((BINS**users * 2**variants, layout.actions), np.float32)
        q[cell(observation, config)] = np.where(np.isfinite(self.values), -self.values, WORST)
        return TablePolicy(config, {"q": q})


def solve(layout: Layout, model: ServiceModel) -> Solution:
    """Compute the policy with the least loss per second.

    Raises:
        Intractable: the workload is not a single server with short queues and constant rates.
    """
    delays = check_solvable(layout, model)
    system = System(layout, model)
    outcomes = [list(system.outcomes(state)) for state in system.states]
    values, loss = iterate_policy(outcomes, layout.actions)
    return Solution(system.states, values, loss, float(system.rate.sum()), delays)


def iterate_policy(outcomes: Sequence[Sequence[Outcome]], actions: int) -> tuple[Floats, float]:
    """Optimise by policy iteration; return each action's loss over the best one's, [S, actions], and loss per second.

    ``outcomes``: the outcomes of the legal actions in each state.
    """
    rows, chosen = np.arange(len(outcomes)), np.array([own[-1].action for own in outcomes])
    by_action = [{one.action: one for one in own} for own in outcomes]
    for _ in range(ROUNDS):
        bias, loss = evaluate_policy([own[int(action)] for own, action in zip(by_action, chosen, strict=True)])
        values = np.full((len(outcomes), actions), np.inf)
        for row, own in enumerate(outcomes):
            for one in own:
                values[row, one.action] = one.loss - loss * one.seconds + one.chance @ bias
        least = values.min(axis=1)
        if (values[rows, chosen] - least).max() < PRECISE:
            break
        chosen = values.argmin(axis=1)
    return values - least[:, None], loss


def evaluate_policy(chosen: list[Outcome]) -> tuple[Floats, float]:
    """Return relative losses [S], 0 in the first state, and loss per second, of the outcome chosen in each state."""
    chance = np.stack([one.chance for one in chosen])
    seconds, loss = (np.array([getattr(one, name) for one in chosen]) for name in ("seconds", "loss"))
    system = np.eye(len(chosen)) - chance
    system[:, 0] = seconds  # replaces the first state's value, which is 0
    solution = np.linalg.solve(system, loss)
    per_second = float(solution[0])
    solution[0] = 0.0
    return solution, per_second


def check_solvable(layout: Layout, model: ServiceModel) -> float:
    """Check that a workload can be solved; return the largest time to serve full queues as a share of ``full_until``.

    Raises:
        Intractable: it has more than one server or two users, long queues, changing rates, several model members, a
            weight on fairness, or quality that falls within the time to serve full queues.
    """
    spec, users = layout.spec, len(layout.users)
    seconds = model.seconds()
    whole = users * spec.queue_limit * float(seconds.max()) / float(layout.quality.full_until.min() or 1e-12)
    reasons = {
        "it has more than one server, or servers that can be turned off": layout.maximum.sum() != 1
        or layout.minimum.sum() != 1,
        f"its queues hold more than {LARGEST_QUEUE} requests": spec.queue_limit > LARGEST_QUEUE,
        "more than two users wait": users > 2,
        "requests come at a rate that changes": bool(model.varying().any() or np.ptp(model.rate, axis=1).any()),
        "members of the domain model differ": bool(np.ptp(model.log_seconds, axis=0).any()),
        "fairness counts": spec.weights.fairness > 0 and users > 1,
        "answers lose quality by delay": whole > 1,
    }
    for reason, holds in reasons.items():
        if holds:
            raise Intractable(f"the optimum can't be computed: {reason}")
    return whole


class System:
    """States and transitions of the semi-Markov decision process.

    Args:
        layout: the workload's layout.
        model: its domain model.
    """

    def __init__(self, layout: Layout, model: ServiceModel) -> None:
        self.layout, self.rate = layout, model.rate[:, 0]
        users, self.variants, _ = layout.shape
        self.limit = layout.spec.queue_limit
        queues = [range(self.limit + 1)] * users
        results = [
            (*waiting, loaded) for waiting in product(*queues) if any(waiting) for loaded in range(self.variants + 1)
        ]
        self.states = np.array(results, np.int64)
        self.place = {state: number for number, state in enumerate(results)}
        points, weights = np.polynomial.hermite_e.hermegauss(NODES)
        self.points, self.weights = points, weights / weights.sum()
        self.log_seconds, self.spread = model.log_seconds[0, 0], model.spread

    def outcomes(self, state: NDArray[np.int64]) -> Iterator[Outcome]:
        """Yield the outcome of each legal action in ``state`` [U + 1] (queue lengths, loaded variant)."""
        waiting, loaded = tuple(int(n) for n in state[:-1]), int(state[-1])
        yield self._arrival(waiting, loaded, WAIT)
        for user, variant, size in product(*map(range, self.layout.shape)):
            if waiting[user] >= (1 if size == 0 else self.layout.batches[size]):
                yield self._batch(waiting, loaded, user, variant, size)

    def _arrival(self, waiting: tuple[int, ...], loaded: int, action: int) -> Outcome:
        chance, loss, total = np.zeros(len(self.states)), 0.0, float(self.rate.sum())
        for user, rate in enumerate(self.rate):
            after = list(waiting)
            after[user] = min(waiting[user] + 1, self.limit)
            chance[self.place[(*after, loaded)]] += rate / total
            loss += rate / total * self._worth(user) * (waiting[user] == self.limit)
        return Outcome(action, loss, 1 / total, chance)

    def _worth(self, user: int) -> float:
        return float(self.layout.quality.weight[user] * self.layout.spec.weights.quality)

    def _batch(self, waiting: tuple[int, ...], loaded: int, user: int, variant: int, size: int) -> Outcome:
        taken = min(int(self.layout.batches[size]), waiting[user])
        switching = loaded not in {variant, self.variants}
        loss = taken * self._worth(user) * (1 - float(self.layout.quality.accuracy[variant]))
        loss += switching * self.layout.spec.weights.switching
        left = [number - taken * (other == user) for other, number in enumerate(waiting)]
        seconds, chance = 0.0, np.zeros(len(self.states))
        for point, weight in zip(self.points, self.weights, strict=True):
            lasts = float(np.exp(self.log_seconds[variant, size] + self.spread[variant] * point))
            lasts += switching * float(self.layout.switch[0])
            own = [self._join_queue(number, rate * lasts) for number, rate in zip(left, self.rate, strict=True)]
            seconds += weight * lasts
            loss += weight * sum(self._worth(other) * lost for other, (_, lost) in enumerate(own))
            spread, waited, dropped = self._spread([chances for chances, _ in own], variant)
            chance += weight * spread
            seconds += weight * waited
            loss += weight * dropped
        action = int(self.layout.action_of(user, variant, size))
        return Outcome(action, loss, seconds, chance)

    def _join_queue(self, number: int, mean: float) -> tuple[Floats, float]:
        """Return the distribution [limit + 1] of a queue of ``number`` after Poisson(``mean``) arrivals, and the mean
        number of dropped requests."""
        room = self.limit - number
        chances = np.zeros(self.limit + 1)
        chances[number:] = [np.exp(-mean) * mean**n / factorial(n) for n in range(room + 1)]
        lost = mean - sum(n * chances[number + n] for n in range(room + 1)) - room * (1 - chances.sum())
        chances[self.limit] += 1 - chances.sum()
        return chances, float(max(lost, 0.0))

    def _spread(self, queues: list[Floats], loaded: int) -> tuple[Floats, float, float]:
        """Combine independent distributions [limit + 1] of the queues: probabilities of next states [S], expected extra
        seconds and extra loss. If all queues are empty, the server waits for an arrival."""
        chance, joint = np.zeros(len(self.states)), queues[0]
        for other in queues[1:]:
            joint = np.multiply.outer(joint, other)
        empty = float(joint.reshape(-1)[0])
        for waiting in product(range(self.limit + 1), repeat=len(queues)):
            if any(waiting):
                chance[self.place[(*waiting, loaded)]] = joint[waiting]
        after = self._arrival((0,) * len(queues), loaded, WAIT)
        return chance + empty * after.chance, empty * after.seconds, empty * after.loss
