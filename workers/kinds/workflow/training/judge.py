"""Verdicts on schedulers, and their pictures."""

from __future__ import annotations

from collections.abc import Sequence as Many
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from app.kinds.workflow.policies import Scheduler, StrategyPolicy, load
from app.kinds.workflow.queue import Layout, pool
from app.kinds.workflow.scheduling.dispatch import MECHANISMS
from app.kinds.workflow.scheduling.rules import RULES
from app.kinds.workflow.spec import Spec
from app.kinds.workflow.trace import Seconds
from workers.evaluation.judge import Counted, Judgement
from workers.evaluation.statistics import MARGIN, mean_interval
from workers.kinds.workflow.evaluation.episodes import Episode, described, reference
from workers.kinds.workflow.evaluation.pictures import QUEUED, picture, queued, window
from workers.kinds.workflow.evaluation.problem import AgentScheduler
from workers.kinds.workflow.evaluation.schedulers import NO_LIMITS, Ruled
from workers.kinds.workflow.simulator.simulate import Figures, figures
from workers.kinds.workflow.training.sequences import Sequence, charged_for, largest, machine_of, played

# What a training shows of what it made: one sequence that was judged on, as the agent and its rivals schedule it.


Json = dict[str, Any]
AGENT, CHAMPION = "agent", "champion"


@dataclass(frozen=True)
class Stage:
    """What all play: a sequence under its mechanism, on the largest node of the workload."""

    sequence: Sequence
    episode: Episode
    label: str

    def scheduler(self, name: str, policy: Any) -> AgentScheduler:
        """A policy as it was judged; a rule too."""
        return AgentScheduler(name, policy, MECHANISMS[self.sequence.mechanism], self._fill, NO_LIMITS)

    def rule(self, name: str) -> AgentScheduler:
        """A rule, named as evaluations name it."""
        rule_name = Ruled(name, MECHANISMS[self.sequence.mechanism], self._fill).name
        return self.scheduler(rule_name, StrategyPolicy({"rule": name}))

    @property
    def _fill(self) -> str:
        return RULES[self.sequence.fill]

    def pictures(self, schedulers: Many[AgentScheduler]) -> list[Json]:
        """What is shown of each; see ``evaluation.pictures``."""
        trace, nodes = self.episode.trace, self.episode.nodes
        played = [scheduler.play(self.episode) for scheduler in schedulers]
        stretch = window(trace, played)
        return [
            picture(one.name, trace, nodes, schedule, labels=[self.label], stretch=stretch)
            for one, schedule in zip(schedulers, played, strict=True)
        ]

    def figures_of(self, scheduler: AgentScheduler) -> Figures:
        """What its schedule is worth."""
        return figures(self.episode.trace, self.episode.nodes, scheduler.play(self.episode))


def pictures(spec: Spec, sequences: Many[Sequence], artifact: bytes, best_rule: str, champion: bytes | None) -> Json:
    """One of the sequences as agent, champion, best rule and cheapest rule schedule it.

    ``schedules`` and ``points``, as ``WorkflowProblem.pictures`` gives them: a report of a training and one of an
    evaluation are drawn alike.
    """
    stage = staged(spec, middle(sequences))
    rules = {name: stage.rule(name) for name in RULES}
    figures_of = {name: stage.figures_of(scheduler) for name, scheduler in rules.items()}
    schedulers = [stage.scheduler(AGENT, load(artifact))]
    schedulers += [] if champion is None else [stage.scheduler(CHAMPION, load(champion))]
    schedulers += [rules[name] for name in dict.fromkeys([best_rule, *_cheapest(figures_of)])]
    points = [{"name": rules[name].name, "cost": w.cost, "makespan": w.makespan} for name, w in figures_of.items()]
    return {"schedules": stage.pictures(schedulers), "points": points}


def staged(spec: Spec, sequence: Sequence) -> Stage:
    """A sequence on what it was drawn for."""
    nodes = machine_of(spec)
    episode = Episode(sequence.trace, nodes, Layout(spec).weights, reference(sequence.trace, nodes))
    return Stage(sequence, episode, f"{largest(spec).name}-0")


def middle(sequences: Many[Sequence]) -> Sequence:
    """The one nearest to the medians of length and load; of equals the first."""
    sizes = np.array([_size(sequence) for sequence in sequences])
    away = np.abs(sizes - np.median(sizes, axis=0))
    return sequences[int((away / np.maximum(away.mean(axis=0), 1e-12)).sum(axis=1).argmin())]


def _size(sequence: Sequence) -> tuple[float, float]:
    """Logs of the number of jobs, and of their work over what the machine can do while they come."""
    load = described(sequence.trace, pool(sequence.processors))[0]
    return float(np.log(sequence.trace.tasks)), float(load)


def _cheapest(figures_of: dict[str, Figures]) -> list[str]:
    """The rule whose schedule costs least, and ends first among those; none where nothing costs anything."""
    best = min(figures_of, key=lambda name: (figures_of[name].cost, figures_of[name].makespan))
    return [best] if figures_of[best].cost > 0 else []


# The verdict on a scheduler: the artifact that will answer, played beside every strategy on sequences of its own.


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
