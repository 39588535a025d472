"""Experience of adaptive rules, and what is learned over loads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from typing_extensions import override

from app.kinds.contract.policy import Choice, Policy, Situation
from app.kinds.inference.dynamics import (
    CONTROL,
    NONE,
    PARTS,
    PARTS_OF_INTERVAL,
    Projector,
    State,
    Transitions,
    examples,
    part_of,
)
from app.kinds.inference.heuristics import Composed
from app.kinds.inference.layout import Layout
from app.kinds.inference.scaling import Lookahead, Scaler
from app.policies.network import NAMES, Examples, gradient, predicted
from workers.kinds.inference.simulator import kernels
from workers.kinds.inference.simulator.world import InferenceWorld

STRAYED = 0.2  # share of the starts that are any legal one
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class Tasks(NamedTuple):
    """Adapting: N tasks. Loads: M users at some moment.

    Attributes:
        past: what *pace* adapts to, [N, K, …].
        coming: what it is to tell then, [N, Q, …].
        episode: of each, [N].
        parts: requests of a user in the last parts, [M, PARTS].
        next: how many came in each of those that followed, on average, [M, 1].
        user: whose they were, [M].
    """

    past: Examples
    coming: Examples
    episode: Integers
    parts: Integers
    next: Floats
    user: Integers


class _Looks(NamedTuple):
    """Runs at the beginnings of parts of control intervals; n of them, ordered by episode and part."""

    episode: Integers
    part: Integers
    ended: Integers
    recent: Transitions


class Exploring(Policy, Scaler):
    """Looks ahead, strays now and then, and has any number of servers on."""

    name = "exploring"

    def __init__(self, random: np.random.Generator) -> None:
        self.random, self._rule = random, Composed(Lookahead(), self)

    @override
    def wanted(self, projector: Projector, state: State) -> Integers:
        layout = projector.layout
        return self.random.integers(layout.minimum, layout.maximum + 1, (len(state.asked), len(layout.servers)))

    @override
    def act(self, situation: Situation) -> Choice:
        mask, state = situation.view.mask, situation.state
        chosen = self._rule.act(situation).action
        drawn = np.where(mask, self.random.random(mask.shape), -1.0).argmax(axis=1)
        strays = (self.random.random(len(mask)) < STRAYED) & (state.asked != CONTROL)
        return Choice(np.where(strays, drawn, chosen))


def gathered(world: InferenceWorld, seed: int) -> tuple[Tasks, int]:
    """What there is to learn from B episodes played to their ends, and the decisions that took.

    Args:
        world: not begun yet.
        seed: of what is tried.
    """
    looks, steps = _played(world, Exploring(np.random.default_rng(seed)))
    return Tasks(*_paces(world.layout, looks), *_loads(looks)), steps


def _played(world: InferenceWorld, policy: Exploring) -> tuple[_Looks, int]:
    world.reset()
    window, seen, steps = world.layout.spec.control_seconds, np.full(world.batch, NONE), 0
    found: list[_Looks] = []
    going = np.ones(world.batch, np.bool_)
    while going.any():
        part = np.array([part_of(now, window) for now in world.worlds.clock[:, kernels.NOW]])
        rows = np.flatnonzero(going & (part > seen))
        if len(rows):
            ended = world.worlds.counts[rows, kernels.FINISHED]
            found.append(_Looks(rows, part[rows], ended, _rows(world.recent, rows)))
            seen[rows] = part[rows]
        steps += int(going.sum())
        going &= ~world.step(policy.act(world.situation).action).done
    return _ordered(found), steps


def _rows(recent: Transitions, rows: Integers) -> Transitions:
    return Transitions(recent.batch[rows], recent.pace[rows], recent.arrived[rows])


def _ordered(found: list[_Looks]) -> _Looks:
    episode, part, ended = (np.concatenate([getattr(one, name) for one in found]) for name in _Looks._fields[:3])
    recent = [np.concatenate(arrays) for arrays in zip(*(one.recent for one in found), strict=True)]
    order = np.lexsort((part, episode))
    return _Looks(episode[order], part[order], ended[order], Transitions(*(array[order] for array in recent)))


def _after(looks: _Looks, parts: int) -> tuple[Integers, Integers]:
    """Positions of looks, and of those so many parts later in the same episode."""
    key = looks.episode * (int(looks.part.max()) + parts + 1) + looks.part
    later = np.searchsorted(key, key + parts)
    found = (later < len(key)) & (key[np.minimum(later, len(key) - 1)] == key + parts)
    return np.flatnonzero(found), later[found]


def _paces(layout: Layout, looks: _Looks) -> tuple[Examples, Examples, Integers]:
    """What batches take that end in the part that follows."""
    now, later = _after(looks, 1)
    past, coming = (examples(layout, _rows(looks.recent, which)) for which in (now, later))
    count = coming.weight.shape[1]
    new = np.arange(count) >= count - (looks.ended[later] - looks.ended[now])[:, None]
    coming = coming._replace(weight=coming.weight * new)
    some = coming.weight.sum(axis=1) > 0
    return _of(past, some), _of(coming, some), looks.episode[now][some]


def _loads(looks: _Looks) -> tuple[Integers, Floats, Integers]:
    """How many requests come in the control interval that follows, a part on average."""
    now, later = _after(looks, PARTS_OF_INTERVAL)
    known = looks.recent.arrived[now]
    coming = looks.recent.arrived[later][:, :, -PARTS_OF_INTERVAL:].mean(axis=2)
    user = np.broadcast_to(np.arange(known.shape[1]), coming.shape)
    return known.reshape(-1, PARTS), coming.reshape(-1, 1), user.ravel()


def _of(several: Examples, rows: NDArray[np.bool_]) -> Examples:
    return Examples(*(part[rows] for part in several))


def joined(several: Sequence[Tasks]) -> Tasks:
    """Tasks of several worlds, whose episodes are told apart."""
    first = np.cumsum([0, *(int(tasks.episode.max(initial=0)) + 1 for tasks in several[:-1])])
    told = [tasks._replace(episode=tasks.episode + begin) for tasks, begin in zip(several, first, strict=True)]
    past, coming = (
        Examples(*(np.concatenate(parts) for parts in zip(*(getattr(tasks, name) for tasks in told), strict=True)))
        for name in ("past", "coming")
    )
    rest = (np.concatenate([getattr(tasks, name) for tasks in told]) for name in Tasks._fields[2:])
    return Tasks(past, coming, *rest)


# The outer loop: parameters from which one step of the gradient on what was tells best what comes.
#
# First-order MAML (Finn et al., 2017) with a step size of each parameter's own: the outer gradient takes the inner
# slope as given. Going through it told no better (see ``benchmarks/inference_adaptation.py``), and took three times as
# long.


UNITS = 16
BATCH, LEARNING_RATE = 512, 0.01
FIRST_RATE = 0.05  # of the inner step
HELD_OUT = 5  # one in so many episodes tells how well it is learned


class Fit(NamedTuple):
    """A network that adapts.

    Attributes:
        start, rates: parameters and their learning rates.
        errors: root mean squared, on held-out episodes: adapted, as it starts, of always 0.
    """

    start: Mapping[str, NDArray[np.float64]]
    rates: Mapping[str, NDArray[np.float64]]
    errors: Mapping[str, float]


class MetaLearner:
    """Learns *pace* of ``Dynamics``.

    Args:
        tasks: what it learns from.
        seed: of what is drawn.
        steps: of the inner gradient; 0: it learns not to adapt.
    """

    def __init__(self, tasks: Tasks, seed: int, steps: int = 1) -> None:
        self.steps, self.updates = steps, 0
        self._random = np.random.default_rng(seed)
        held_out = tasks.episode % HELD_OUT == 0
        self._learned, self._held_out = np.flatnonzero(~held_out), np.flatnonzero(held_out)
        self._past, self._coming = tensors(tasks.past), tensors(tasks.coming)
        width = tasks.past.inputs.shape[2]
        shapes = dict(zip(NAMES, [(width, UNITS), (1, UNITS), (UNITS, 1), (1, 1)], strict=True))
        scale = {"hidden.weight": width**-0.5, "out.weight": UNITS**-0.5}
        self.start = {
            name: _variable(scale.get(name, 0.0) * self._random.standard_normal(shape))
            for name, shape in shapes.items()
        }
        self.rates = {name: _variable(np.full(shape, FIRST_RATE)) for name, shape in shapes.items()}
        self._optimiser = torch.optim.Adam([*self.start.values(), *self.rates.values()], LEARNING_RATE)

    def advance(self, updates: int) -> float:
        """Learn for so many updates; the mean loss."""
        losses = []
        for _ in range(updates):
            rows = torch.from_numpy(self._random.choice(self._learned, min(BATCH, len(self._learned))))
            loss = self.loss(rows, self.steps)
            self._optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            self._optimiser.step()
            losses.append(float(loss.detach()))
        self.updates += updates
        return float(np.mean(losses))

    def loss(self, rows: Tensor, steps: int) -> Tensor:
        """Mean squared error of what comes, once adapted to what was."""
        past, coming = (Examples(*(part[rows] for part in whole)) for whole in (self._past, self._coming))
        now: Mapping[str, Tensor] = self.start
        for _ in range(steps):
            with torch.no_grad():
                slope = gradient(now, past)
            now = {name: now[name] - self.rates[name] * slope[name] for name in NAMES}
        found: Tensor = (coming.weight * (predicted(now, coming.inputs) - coming.target) ** 2).sum()
        return found / coming.weight.sum()

    def fit(self) -> Fit:
        """What was learned: parameters, their learning rates, and errors on held-out episodes."""
        rows = torch.from_numpy(self._held_out)
        weight, target = self._coming.weight[rows], self._coming.target[rows]
        with torch.no_grad():
            squares = {
                "adapted": self.loss(rows, self.steps),
                "unadapted": self.loss(rows, 0),
                "expected": (weight * target**2).sum() / weight.sum(),
            }
        start, rates = (
            {name: value.detach().numpy().copy() for name, value in part.items()} for part in (self.start, self.rates)
        )
        return Fit(start, rates, {name: float(square.sqrt()) for name, square in squares.items()})


def tensors(several: Examples) -> Examples:
    """The same arrays as float64 tensors of torch."""
    return Examples(*(torch.from_numpy(np.ascontiguousarray(part, np.float64)) for part in several))


def _variable(value: NDArray[np.float64]) -> Tensor:
    return torch.from_numpy(np.array(value, np.float64)).requires_grad_()
