"""The verdict on a scheduler: the artifact that will answer, played beside every strategy on sequences of its own."""

from typing import Any, NamedTuple

import numpy as np

from app.kinds.workflow.policies.artifact import Scheduler, load
from app.kinds.workflow.policies.schedulers import StrategyPolicy
from app.kinds.workflow.scheduling.rules import RULES
from app.kinds.workflow.trace import Seconds
from workers.evaluation.equivalence import MARGIN
from workers.evaluation.judge import Counted, Judgement
from workers.evaluation.statistics import mean_interval
from workers.kinds.workflow.evaluation.outcomes import QUEUED, queued
from workers.kinds.workflow.training.sequences import Sequence, charged_for, played


class Scores(NamedTuple):
    """What a policy comes to on N sequences: returns [N], losses with their sign changed, and outcomes [N, 3]."""

    returns: Seconds
    counted: Seconds


def scored(policy: Scheduler, sequences: list[Sequence]) -> Scores:
    """Play every sequence once."""
    begun = [(sequence, played(sequence, policy)) for sequence in sequences]
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
        artifact: what would answer.
        sequences: none of which overlap, so that each counts by itself.
        champion: what answers now.
        answering: the strategy that answers while no agent does; what is no rule, is not played.
        margin: of practical equivalence, as a share of the best rule's loss.
    """
    agent = scored(load(artifact), sequences)
    rules = {name: scored(StrategyPolicy({"rule": name}), sequences) for name in RULES}
    present = None if champion is None else scored(load(champion), sequences)
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
