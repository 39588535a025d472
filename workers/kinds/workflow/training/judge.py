"""The verdict on a scheduler: the artifact that will answer, played beside every strategy on sequences of its own."""

from typing import Any, NamedTuple

import numpy as np

from app.kinds.workflow.policies.artifact import Scheduler, load
from app.kinds.workflow.policies.combined import InspectorPolicy, PortfolioPolicy
from app.kinds.workflow.policies.members import ScorerPolicy, StrategyPolicy
from app.kinds.workflow.scheduling.rules import RULES
from app.kinds.workflow.trace import Seconds
from workers.evaluation.equivalence import MARGIN
from workers.evaluation.judge import Counted, Judgement
from workers.evaluation.statistics import mean_interval
from workers.kinds.workflow.evaluation.outcomes import QUEUED, queued
from workers.kinds.workflow.simulator.agents import NETWORK, Agent, Networks, agent_of, networks, parameters
from workers.kinds.workflow.training.proximal import flat
from workers.kinds.workflow.training.sequences import Sequence, charged_for, loss, played


def nets_of(scorers: list[ScorerPolicy | None]) -> Networks:
    """The networks of members of equal widths; rules have one that is never asked."""
    sizes = {(s.config["layers"][0], s.config["joint"][0]) for s in scorers if s is not None} or {(1, 1)}
    if len(sizes) > 1:
        raise ValueError("the networks of a portfolio must have the same widths")
    wide, joint = sizes.pop()
    nothing = np.zeros(parameters(wide, joint))
    rows = [nothing if scorer is None else point_of(scorer) for scorer in scorers]
    return networks(np.array(rows), wide, joint)


def point_of(scorer: ScorerPolicy) -> Seconds:
    """Its parameters, [P]."""
    return flat({name: np.asarray(array, np.float64) for name, array in scorer.arrays.items()})


def compiled(policy: Scheduler) -> Agent:
    """A served policy, as simulators play it."""
    if isinstance(policy, InspectorPolicy):
        base = compiled(policy.base)
        scorer = policy.network
        wide, joint = scorer.config["layers"][0], scorer.config["joint"][0]
        own = networks(point_of(scorer)[None], wide, joint)
        return base._replace(inspector=own, inspects=np.array([1]))
    members = policy.members if isinstance(policy, PortfolioPolicy) else (policy,)
    rules = [RULES.index(m.name) if isinstance(m, StrategyPolicy) else NETWORK for m in members]
    nets = nets_of([m if isinstance(m, ScorerPolicy) else None for m in members])
    if isinstance(policy, PortfolioPolicy):
        return agent_of(rules, nets, policy.gate, policy.margin)
    return agent_of(rules, nets)


def rule(name: str) -> Agent:
    """A rule, as simulators play it."""
    return compiled(StrategyPolicy({"rule": name}))


def measured(agent: Agent, sequences: list[Sequence]) -> Seconds:
    """The loss on each sequence, [N]."""
    return np.array([loss(sequence, agent) for sequence in sequences])


class Scores(NamedTuple):
    """What an agent comes to on N sequences: returns [N], losses with their sign changed, and outcomes [N, 3]."""

    returns: Seconds
    counted: Seconds


def scored(agent: Agent, sequences: list[Sequence]) -> Scores:
    """Play every sequence once."""
    begun = [(sequence, played(sequence, agent)) for sequence in sequences]
    losses = [charged_for(sequence, at) for sequence, at in begun]
    return Scores(-np.array(losses), np.array([queued(sequence.trace, at) for sequence, at in begun]))


def judge(
    artifact: bytes,
    sequences: list[Sequence],
    champion: bytes | None = None,
    *,
    answering: str | None = None,
    margin: float = MARGIN,
) -> dict[str, Any]:
    """The artifact beside all rules and the champion, paired by sequence: the agent report's ``return`` to ``reason``.

    A return is a loss with its sign changed.

    Args:
        answering: the strategy that answers while no agent does; what is no rule, is not played.
        margin: of practical equivalence, as a share of the best rule's loss.
    """
    agent = scored(compiled(load(artifact)), sequences)
    rules = {name: scored(rule(name), sequences) for name in RULES}
    present = None if champion is None else scored(compiled(load(champion)), sequences)
    returns = {name: one.returns for name, one in rules.items()}
    verdict = Judgement(
        agent.returns,
        returns,
        answering if answering in rules else None,
        None if present is None else present.returns,
        margin,
        Counted(
            QUEUED,
            agent.counted,
            {name: one.counted for name, one in rules.items()},
            None if present is None else present.counted,
        ),
    )
    terms = {"slowdown" if sequences[0].objective is None else "objective": mean_interval(-verdict.returns)}
    report = verdict.report()
    return {name: value for name, value in report.items() if name != "episodes"} | {
        "terms": terms,
        "heuristics": {name: mean_interval(-values) for name, values in returns.items()},
        "sequences": len(sequences),
    }
