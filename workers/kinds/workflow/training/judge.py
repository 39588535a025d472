"""The verdict on a scheduler: the artifact that will answer, played beside every strategy on sequences of its own."""

from typing import Any

import numpy as np

from app.kinds.workflow.policies.artifact import Scheduler, load
from app.kinds.workflow.policies.combined import InspectorPolicy, PortfolioPolicy
from app.kinds.workflow.policies.members import ScorerPolicy, StrategyPolicy
from app.kinds.workflow.scheduling.rules import RULES
from app.kinds.workflow.trace import Seconds
from workers.kinds.workflow.simulator.agents import NETWORK, Agent, Networks, agent_of, networks, parameters
from workers.kinds.workflow.training.proximal import flat
from workers.kinds.workflow.training.sequences import Sequence, loss

NORMAL = 1.96  # standard errors of a 95 % interval


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


def interval(values: Seconds) -> dict[str, float]:
    """Mean and its 95 % interval."""
    mean = float(values.mean())
    half = NORMAL * float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("inf")
    return {"mean": mean, "low": mean - half, "high": mean + half}


def judge(artifact: bytes, sequences: list[Sequence], champion: bytes | None = None) -> dict[str, Any]:
    """The artifact beside all rules and the champion, paired by sequence; whether it may answer, and why.

    It may when its mean loss is no higher than the best rule's, and the champion's, with 95 % confidence.
    """
    found = measured(compiled(load(artifact)), sequences)
    rules = {name: measured(rule(name), sequences) for name in RULES}
    best = min(rules, key=lambda name: float(rules[name].mean()))
    rivals = {f"the best strategy, {best},": rules[best]}
    if champion is not None:
        rivals["the present champion"] = measured(compiled(load(champion)), sequences)
    gains = {who: interval(other - found) for who, other in rivals.items()}
    lost = [who for who, gain in gains.items() if gain["low"] < 0.0]
    unit = "mean bounded slowdown" if sequences[0].worth is None else "of what the objective charges"
    told = "; ".join(
        f"{who} has {gain['mean']:.4g} more {unit} ({gain['low']:.4g} to {gain['high']:.4g}, 95 %)"
        for who, gain in gains.items()
    )
    reason = f"on {len(sequences)} sequences {told}"
    return {
        "return": {key: -value for key, value in zip(("mean", "high", "low"), interval(found).values(), strict=True)},
        "terms": {"slowdown" if sequences[0].worth is None else "objective": interval(found)},
        "heuristics": {name: interval(values) for name, values in rules.items()},
        "best_heuristic": best,
        "gains": gains,
        "sequences": len(sequences),
        "promoted": not lost,
        "reason": reason if not lost else f"not better than {' and '.join(lost)} with confidence: {reason}",
    }
