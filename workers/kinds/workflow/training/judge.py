"""The verdict on a scheduler: the artifact that will answer, played beside every strategy on sequences of its own."""

from typing import Any

import numpy as np

from app.kinds.workflow.policies.artifact import Scheduler, load
from app.kinds.workflow.policies.combined import InspectorPolicy, PortfolioPolicy
from app.kinds.workflow.policies.members import ScorerPolicy, StrategyPolicy
from app.kinds.workflow.scheduling.rules import RULES
from app.kinds.workflow.trace import Seconds
from workers.evaluation.judge import Judgement
from workers.evaluation.statistics import mean_interval
from workers.kinds.workflow.simulator.agents import NETWORK, Agent, Networks, agent_of, networks, parameters
from workers.kinds.workflow.training.proximal import flat
from workers.kinds.workflow.training.sequences import Sequence, loss


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


def judge(artifact: bytes, sequences: list[Sequence], champion: bytes | None = None) -> dict[str, Any]:
    """The artifact beside all rules and the champion, paired by sequence: the agent report's ``return`` to ``reason``.

    A return is a loss with its sign changed.
    """
    rules = {name: -measured(rule(name), sequences) for name in RULES}
    present = None if champion is None else -measured(compiled(load(champion)), sequences)
    verdict = Judgement(-measured(compiled(load(artifact)), sequences), rules, present)
    gains = {f"the best strategy, {verdict.best},": verdict.advantage}
    gains |= {} if verdict.gain is None else {"the present champion": verdict.gain}
    whole = sequences[0].objective is not None
    report = verdict.report()
    terms = {"objective" if whole else "slowdown": mean_interval(-verdict.returns)}
    return {name: value for name, value in report.items() if name not in ("advantage", "episodes")} | {
        "terms": terms,
        "heuristics": {name: mean_interval(-returns) for name, returns in rules.items()},
        "gains": gains,
        "sequences": len(sequences),
        "reason": _reason(verdict, gains, "of what the objective charges" if whole else "mean bounded slowdown"),
    }


def _reason(verdict: Judgement, gains: dict[str, dict[str, float]], unit: str) -> str:
    """The verdict in words, with losses in their unit."""
    losses = "; ".join(
        f"{who} has {gain['mean']:.4g} more {unit} ({gain['low']:.4g} to {gain['high']:.4g}, 95 %)"
        for who, gain in gains.items()
    )
    reason = f"on {len(verdict.returns)} sequences {losses}"
    lost = [who for who, passed in zip(gains, (verdict.as_good, verdict.better), strict=False) if not passed]
    return f"not better than {' and '.join(lost)} with confidence: {reason}" if lost else reason
