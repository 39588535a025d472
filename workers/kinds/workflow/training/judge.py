"""Verdicts on trained schedulers, and charts of their schedules."""

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
from workers.evaluation.judge import Judgement, OutcomeValues
from workers.evaluation.statistics import MARGIN, mean_interval
from workers.kinds.workflow.evaluation.episodes import Episode, describe_episode, reference
from workers.kinds.workflow.evaluation.pictures import QUEUED, picture, queue_outcomes, window
from workers.kinds.workflow.evaluation.problem import AgentScheduler
from workers.kinds.workflow.evaluation.schedulers import NO_LIMITS, RuleScheduler
from workers.kinds.workflow.simulator.simulate import Figures, figures
from workers.kinds.workflow.training.sequences import Sequence, charged_for, largest, machine_of, play_sequence

Json = dict[str, Any]
AGENT, CHAMPION = "agent", "champion"


@dataclass(frozen=True)
class Stage:
    """A sequence for charts of several policies, as an ``episode`` on the workload's largest node, named ``label``."""

    sequence: Sequence
    episode: Episode
    label: str

    def scheduler(self, name: str, policy: Any) -> AgentScheduler:
        """Make the scheduler by which a policy was judged, under the given name."""
        return AgentScheduler(name, policy, MECHANISMS[self.sequence.mechanism], self._fill, NO_LIMITS)

    def rule(self, name: str) -> AgentScheduler:
        """Make the scheduler of the rule ``name``, called as in evaluations (rule, mechanism, order of backfilling)."""
        rule_name = RuleScheduler(name, MECHANISMS[self.sequence.mechanism], self._fill).name
        return self.scheduler(rule_name, StrategyPolicy({"rule": name}))

    @property
    def _fill(self) -> str:
        return RULES[self.sequence.fill]

    def pictures(self, schedulers: Many[AgentScheduler]) -> list[Json]:
        """Chart each schedule (figures, course over time, Gantt chart) over a common time window, as JSON values."""
        trace, nodes = self.episode.trace, self.episode.nodes
        played = [scheduler.play(self.episode) for scheduler in schedulers]
        stretch = window(trace, played)
        return [
            picture(one.name, trace, nodes, schedule, labels=[self.label], stretch=stretch)
            for one, schedule in zip(schedulers, played, strict=True)
        ]

    def figures_of(self, scheduler: AgentScheduler) -> Figures:
        """Play the episode by a scheduler, and return the metrics of its schedule."""
        return figures(self.episode.trace, self.episode.nodes, scheduler.play(self.episode))


def pictures(spec: Spec, sequences: Many[Sequence], artifact: bytes, best_rule: str, champion: bytes | None) -> Json:
    """Chart one of the judged sequences under agent, champion, rule ``best_rule`` and cheapest rule, as JSON values.

    Raises:
        IncompatibleArtifact: an artifact can't be read.
    """
    stage = stage_sequence(spec, middle(sequences))
    rules = {name: stage.rule(name) for name in RULES}
    figures_of = {name: stage.figures_of(scheduler) for name, scheduler in rules.items()}
    schedulers = [stage.scheduler(AGENT, load(artifact))]
    schedulers += [] if champion is None else [stage.scheduler(CHAMPION, load(champion))]
    schedulers += [rules[name] for name in dict.fromkeys([best_rule, *_cheapest(figures_of)])]
    points = [{"name": rules[name].name, "cost": w.cost, "makespan": w.makespan} for name, w in figures_of.items()]
    return {"schedules": stage.pictures(schedulers), "points": points}


def stage_sequence(spec: Spec, sequence: Sequence) -> Stage:
    """Make a sequence an episode on the workload's largest node. Raises ValueError if a task does not fit it."""
    nodes = machine_of(spec)
    episode = Episode(sequence.trace, nodes, Layout(spec).weights, reference(sequence.trace, nodes))
    return Stage(sequence, episode, f"{largest(spec).name}-0")


def middle(sequences: Many[Sequence]) -> Sequence:
    """Return the sequence closest to the medians of length and load; the first of equally close ones."""
    sizes = np.array([_size(sequence) for sequence in sequences])
    away = np.abs(sizes - np.median(sizes, axis=0))
    return sequences[int((away / np.maximum(away.mean(axis=0), 1e-12)).sum(axis=1).argmin())]


def _size(sequence: Sequence) -> tuple[float, float]:
    """Return natural logs: of the number of jobs, and of their work over the machine's capacity while they come."""
    load = describe_episode(sequence.trace, pool(sequence.processors))[0]
    return float(np.log(sequence.trace.tasks)), float(load)


def _cheapest(figures_of: dict[str, Figures]) -> list[str]:
    """Return [name] of the rule of least cost, then least makespan; [] if that rule costs nothing."""
    best = min(figures_of, key=lambda name: (figures_of[name].cost, figures_of[name].makespan))
    return [best] if figures_of[best].cost > 0 else []


class Scores(NamedTuple):
    """Results on N sequences: returns (negative losses) [N]; mean bounded slowdown, wait and makespan (s) [N, 3]."""

    returns: Seconds
    outcomes: Seconds


def score_policy(policy: Scheduler, sequences: list[Sequence]) -> Scores:
    """Play a policy once on every sequence. Raises ValueError if a job can't be played."""
    begun = [(sequence, play_sequence(sequence, policy)) for sequence in sequences]
    losses = [charged_for(sequence, at) for sequence, at in begun]
    return Scores(-np.array(losses), np.array([queue_outcomes(sequence.trace, at) for sequence, at in begun]))


def judge(
    artifact: bytes,
    sequences: list[Sequence],
    champion: bytes | None = None,
    *,
    answering: str | None = None,
    margin: float = MARGIN,
) -> dict[str, Any]:
    """Judge an artifact against all rules and the champion, paired by sequence; return the report's JSON-like entries.

    Losses are mean bounded slowdowns, or the weighted objective; intervals are 95 %.

    Args:
        artifact: the candidate.
        sequences: disjoint sequences, each an independent observation.
        champion: the serving artifact, which the candidate must beat; None: there is none.
        answering: name of the rule that decides without an agent; other names and None are ignored.
        margin: margin of practical equivalence, as a share of the best rule's loss.

    Raises:
        IncompatibleArtifact: an artifact can't be read.
    """
    agent = score_policy(load(artifact), sequences)
    rules = {name: score_policy(StrategyPolicy({"rule": name}), sequences) for name in RULES}
    present = None if champion is None else score_policy(load(champion), sequences)
    returns = {name: one.returns for name, one in rules.items()}
    verdict = Judgement(
        agent.returns,
        returns,
        answering if answering in rules else None,
        None if present is None else present.returns,
        margin,
        OutcomeValues(
            QUEUED,
            agent.outcomes,
            {name: one.outcomes for name, one in rules.items()},
            None if present is None else present.outcomes,
        ),
    )
    terms = {"slowdown" if sequences[0].objective is None else "objective": mean_interval(-verdict.returns)}
    report = verdict.report()
    return {name: value for name, value in report.items() if name != "episodes"} | {
        "terms": terms,
        "heuristics": {name: mean_interval(-values) for name, values in returns.items()},
        "sequences": len(sequences),
    }
