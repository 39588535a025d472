"""The gate of a portfolio: what each member would lose or gain, learned from forks and held to its word.

At states along plays of the first member, the play is forked: each member picks for a while, then the first goes on.
What the fork's tasks lose in all, against the first's, is regressed on the state. A member's margin is the
smallest at which, on forks that nothing was fitted on, its gains where it would be asked are above 0 with confidence;
where there is no such margin the member is never asked.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.workflow.scheduling.observation import STATE_WIDTH
from app.kinds.workflow.trace import Seconds
from workers.kinds.workflow.simulator.agents import Agent, play_agent, state_at
from workers.kinds.workflow.simulator.observation import room_for
from workers.kinds.workflow.simulator.pool import Play, advance, opened
from workers.kinds.workflow.training.objective import rates
from workers.kinds.workflow.training.sequences import WHOLE, Sequence

EVERY, HORIZON = 60, 40  # picks between forks, and of a member in a fork
RIDGE = 1.0
LIMIT = 1.0  # of a relative gain: heavy tails are cut
CONFIDENCE = 1.645  # standard errors
FEWEST = 8  # forks on which a margin may rest
NEVER = 1e9


class Forks(NamedTuple):
    """N forks of M members: states [N, S], losses against the first member's, relative, [N, M]."""

    states: Seconds
    losses: Seconds


class Gate(NamedTuple):
    """Expected losses are ``weights · state + margin``; calibration tells what they rest on."""

    weights: Seconds
    margin: Seconds
    calibration: list[dict[str, float]]


def copied(play: Play) -> Play:
    """A copy of a play that shares no array with it."""
    tasks = play.tasks._replace(**{name: getattr(play.tasks, name).copy() for name in play.tasks._fields})
    pool = play.pool._replace(**{name: getattr(play.pool, name).copy() for name in play.pool._fields})
    rest = {name: getattr(play, name).copy() for name in play._fields if name not in ("tasks", "pool")}
    return Play(tasks=tasks, pool=pool, **rest)


def forked(sequences: list[Sequence], agent: Agent) -> Forks:
    """Forks along the sequences."""
    states, losses = [], []
    for sequence in sequences:
        play, member = opened(sequence.trace, sequence.processors), np.full(sequence.trace.tasks, -1, np.int64)
        room = room_for(len(play.pool.ends))
        while True:
            play_agent(play, alone(agent, 0), sequence.mechanism, sequence.fill, sequence.processors, EVERY, member)
            if not advance(play, sequence.mechanism, sequence.fill):
                break
            states.append(state_at(play, sequence.mechanism, sequence.processors, room))
            losses.append(_compared(play, sequence, agent))
    return Forks(np.array(states).reshape(-1, STATE_WIDTH), np.array(losses).reshape(-1, len(agent.rule)))


def alone(agent: Agent, m: int) -> Agent:
    """One member by itself."""
    nets = agent.networks._replace(**{n: getattr(agent.networks, n)[m : m + 1] for n in agent.networks._fields})
    return agent._replace(
        rule=agent.rule[m : m + 1], networks=nets, gate=agent.gate[m : m + 1], margin=agent.margin[m : m + 1]
    )


def _compared(play: Play, sequence: Sequence, agent: Agent) -> Seconds:
    """What the waits of all tasks that had not started are charged, of each member over the first's, less 1, [M]."""
    fresh = np.isnan(play.begun)
    found = np.zeros(len(agent.rule))
    for m in range(len(found)):
        going, member = copied(play), np.full(sequence.trace.tasks, -1, np.int64)
        for who, picks in ((m, HORIZON), (0, WHOLE)):
            play_agent(going, alone(agent, who), sequence.mechanism, sequence.fill, sequence.processors, picks, member)
        paid = (going.begun - sequence.trace.submit) * rates(sequence.objective, sequence.trace)
        found[m] = 1.0 + paid[fresh].sum()
    relative: Seconds = np.clip(found / found[0] - 1.0, -LIMIT, LIMIT)
    return relative


def fitted(learned: Forks, held_out: Forks) -> Gate:
    """Ridge regression on ``learned``, margins by ``held_out``."""
    x, members = learned.states, learned.losses.shape[1]
    square = x.T @ x + RIDGE * np.eye(x.shape[1])
    weights = np.asarray(np.linalg.solve(square, x.T @ learned.losses).T, np.float64)
    weights[0] = 0.0
    margin, fits = np.zeros(members), [{"fires": 1.0, "gain": 0.0, "error": 0.0, "margin": 0.0}]
    for m in range(1, members):
        expected = held_out.states @ weights[m]
        margin[m], found = calibrated(expected, held_out.losses[:, m])
        fits.append(found)
    return Gate(weights, margin, fits)


def calibrated(expected: Seconds, losses: Seconds) -> tuple[float, dict[str, float]]:
    """The smallest margin at which what is realised where it fires is a gain with confidence; ``NEVER`` if none is.

    Args:
        expected: losses by the regression, [N].
        losses: as they turned out, [N].
    """
    order: NDArray[np.int64] = np.argsort(expected)
    for count in range(len(order), FEWEST - 1, -1):
        fires = order[:count]
        if expected[fires[-1]] >= 0.0:
            continue
        mean, error = float(losses[fires].mean()), float(losses[fires].std(ddof=1) / np.sqrt(count))
        if mean + CONFIDENCE * error < 0.0:
            margin = -float(expected[fires[-1]]) - 1e-9
            return margin, {"fires": count / len(order), "gain": -mean, "error": error, "margin": margin}
    return NEVER, {"fires": 0.0, "gain": 0.0, "error": 0.0, "margin": NEVER}
