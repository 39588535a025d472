"""Agents on a pool, compiled: a gate asks one of several members for the next task, an inspector may put it off.

A single strategy, a single network, a portfolio and an inspected strategy are all one ``Agent``. The features are those
of ``app.kinds.workflow.scheduling.observation``; artifacts answer the same in plain NumPy.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.workflow.scheduling.observation import LONGEST_DELAY, STATE_WIDTH, WIDTH, Survey, state
from app.kinds.workflow.scheduling.rules import scores
from app.kinds.workflow.trace import Seconds
from workers.kinds.workflow.simulator.compiling import kernel
from workers.kinds.workflow.simulator.observation import Candidates, Room, described, look, room_for
from workers.kinds.workflow.simulator.pool import NOW, Play, advance, choose, without_reference_counts

NETWORK = -1  # in place of a rule


class Networks(NamedTuple):
    """M networks over candidates, F features → H → J → 1, rectified; what they give is added to ``urgency``.

    Attributes:
        first: [M, F, H].
        first_bias: [M, H].
        second: [M, H, J].
        second_bias: [M, J].
        last: [M, J].
        last_bias: [M].
    """

    first: Seconds
    first_bias: Seconds
    second: Seconds
    second_bias: Seconds
    last: Seconds
    last_bias: Seconds


class Agent(NamedTuple):
    """What decides.

    Attributes:
        rule: of each member, index into ``RULES``; −1 for its network, [M].
        networks: one for each member, whether it is used or not.
        gate: expected loss of each member against the first as a linear function of the state, [M, STATE_WIDTH].
        margin: by how much the expected loss of a member must lie below the first's, [M].
        inspector: one network, which puts a pick off where its output is below 0; none where ``inspects`` is 0.
        inspects: [1].
    """

    rule: NDArray[np.int64]
    networks: Networks
    gate: Seconds
    margin: Seconds
    inspector: Networks
    inspects: NDArray[np.int64]


@kernel
def rated(nets: Networks, m: int, table: Seconds) -> Seconds:
    """What network ``m`` gives for candidates of features [Q, F], without the urgency, [Q]."""
    hidden = np.maximum(table @ nets.first[m] + nets.first_bias[m], 0.0)
    joint = np.maximum(hidden @ nets.second[m] + nets.second_bias[m], 0.0)
    return joint @ nets.last[m] + nets.last_bias[m]


@kernel
def best(nets: Networks, member: int, seen: Survey) -> int:
    """The candidate that a network scores highest, the first of equals."""
    return int(np.argmax(seen.urgency + rated(nets, member, described(seen, 0, len(seen.urgency)))))


@kernel
def accepted(agent: Agent, seen: Survey, i: int) -> bool:
    """Whether the inspector lets candidate ``i`` go on."""
    if seen.free == seen.processors or seen.waited[i] > LONGEST_DELAY:
        return True
    return bool(rated(agent.inspector, 0, described(seen, i, i + 1))[0] >= 0.0)


@kernel
def gated(agent: Agent, seen: Survey) -> int:
    """The member that is asked: of those whose expected loss is far enough below the first's, the least."""
    member, least = 0, 0.0
    if len(agent.rule) > 1:
        view = state(seen)
        for m in range(1, len(agent.rule)):
            loss = agent.margin[m]
            for s in range(STATE_WIDTH):
                loss += agent.gate[m, s] * view[s]
            if loss < least:
                member, least = m, loss
    return member


@kernel
def chosen_candidate(play: Play, agent: Agent, member: int, candidates: Candidates) -> int:
    """The candidate that a member picks."""
    task, tasks = candidates.task, play.tasks
    if agent.rule[member] == NETWORK:
        return best(agent.networks, member, candidates.seen)
    now = play.clock[NOW]
    found = scores(agent.rule[member], now, tasks.submit[task], tasks.expected[task], tasks.processors[task])
    return int(np.argmin(found))


@kernel
def play_agent(
    play: Play, agent: Agent, mechanism: int, fill: int, processors: int, picks: int, member: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Play on with an agent, at most so many picks.

    Args:
        member: who picked each task, and is filled in, [L].

    Returns:
        How often each member was asked, and how often its pick was put off, [M + 1].
    """
    play = without_reference_counts(play)
    counts, room = np.zeros(len(agent.rule) + 1, np.int64), room_for(len(play.pool.ends))
    while picks > 0 and advance(play, mechanism, fill):
        picks -= 1
        candidates = look(play, mechanism, processors, room)
        member_chosen = gated(agent, candidates.seen)
        i = chosen_candidate(play, agent, member_chosen, candidates)
        task = candidates.task[i]
        counts[member_chosen] += 1
        if agent.inspects[0] and not accepted(agent, candidates.seen, i):
            counts[-1] += 1
            choose(play, mechanism, fill, -1)
            continue
        member[task] = member_chosen
        choose(play, mechanism, fill, task)
    return counts


def networks(flat: Seconds, wide: int, joint: int) -> Networks:
    """Cut parameters [M, P] of M networks of H and J hidden units; see ``parameters``."""
    count = len(flat)
    shapes = [(WIDTH, wide), (wide,), (wide, joint), (joint,), (joint,), ()]
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes])
    parts = np.split(flat, ends[:-1], axis=1)
    return Networks(
        *(np.ascontiguousarray(part.reshape(count, *shape)) for part, shape in zip(parts, shapes, strict=True))
    )


def parameters(wide: int, joint: int) -> int:
    """How many numbers a network has."""
    return WIDTH * wide + wide + wide * joint + joint + joint + 1


def agent_of(
    rules: list[int],
    nets: Networks,
    gate: Seconds | None = None,
    margin: Seconds | None = None,
    inspector: Networks | None = None,
) -> Agent:
    """An agent of M members; without a gate the first answers."""
    count = len(rules)
    none = networks(np.zeros((1, parameters(1, 1))), 1, 1)
    return Agent(
        np.array(rules, np.int64),
        nets,
        np.zeros((count, STATE_WIDTH)) if gate is None else gate,
        np.zeros(count) if margin is None else margin,
        none if inspector is None else inspector,
        np.array([inspector is not None], np.int64),
    )


@kernel
def state_at(play: Play, mechanism: int, processors: int, room: Room) -> Seconds:
    """What a gate sees of a play at which a pick is due, [``STATE_WIDTH``]."""
    return state(look(play, mechanism, processors, room).seen)
