"""Summary of an evaluation: figures with intervals, the class of every candidate, and its verdict in words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.charts.text import SHARE, amount, decimals, percent
from app.kinds.contract.kind import Outcome
from app.kinds.contract.policy import Policy
from workers.evaluation.candidate import OPTIMUM, PLAN, PLANNED, RANDOM, Candidate, PolicyEntry, Settings
from workers.evaluation.judge import later, refute
from workers.evaluation.problem import LevelOptimum, Problem
from workers.evaluation.report.schedules import heat_map_json
from workers.evaluation.statistics import (
    CLASSES,
    TITLES,
    Clusters,
    Equivalence,
    Interval,
    Level,
    Record,
    estimate,
    interquartile,
    profile,
    share_interval,
    wins,
)
from workers.evaluation.wrappers import applicable_wrappers

Floats = NDArray[np.float64]
Played = Mapping[Level, Mapping[str, Sequence[Record]]]
SCHEMA = "steward.evaluation/1"
PROFILE_POINTS = 41
MOST_GUARDED = 0.5
"""Share of an agent's decisions on the training distribution made by the guard, above which the agent is outdated."""
NOTHING_PLAYED = "nothing is assessed: every agent is outdated"
PROFILED = (Level.SEEDS, Level.PARAMETERS, Level.COMPOSITION, Level.ENVIRONMENT)


@dataclass(frozen=True)
class Evaluation:
    """Result of an evaluation.

    ``document`` is plain JSON; an ``interval`` is ``{"mean", "low", "high"}``. Unavailable values are null, with a
    ``reason`` beside them:

    - ``schema``, ``kind``, ``workload``, ``settings``, ``terms``, ``term_weights``, ``seconds`` (wall-clock);
    - ``outcomes``: ``name`` and ``unit`` (``share``: 0 to 1) of the outcomes for users, in display order;
    - ``levels``: of ``train`` and ``L0`` to ``L4`` each ``level``, ``title``, ``description``, ``wrappers``,
      ``available``, ``reason``, ``episodes``, ``best_heuristic``, ``optimum`` (``available``, ``exact``, ``policy``,
      ``expected``, ``error``, ``reason``) and ``policies``, by name: ``outcomes`` (intervals, by the outcome's name),
      ``return``, ``iqm``, ``advantage`` over the best heuristic and ``probability_of_improvement`` on it (intervals),
      ``terms`` (mean per episode), ``guarded`` (share of decisions), ``normalised`` (0: random, 1: best heuristic);
    - ``policies``: ``name``, ``role`` (candidate, heuristic, optimum, plan, tuner, random) and ``title``, in display
      order;
    - ``candidates``: ``name``, ``class`` (none, L0 … L4), ``verdict``, ``outdated`` (the reason; null where it was
      assessed), ``levels`` (empty if outdated; ``level``, ``passed``, ``reason``, ``advantage``,
      ``probability_of_improvement``, ``gap`` of ``return`` and ``advantage`` from training to the level,
      ``gap_to_optimum`` as a share), ``heat_map`` (by ``schedules.heat_map_json``), ``aliasing`` (by ``judge.check``),
      ``curve``;
    - ``profiles``: by level ``tau`` and for each policy ``share``, ``low``, ``high`` of the episodes whose normalised
      score is above;
    - ``pictures``: plots of what policies did, null where the kind draws none;
    - ``tuner``: result of the tuner, by ``candidate.TuningResult.as_dict``.
    """

    document: dict[str, Any]

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON document itself, not a copy."""
        return self.document

    def class_of(self, name: str) -> str:
        """Return the class of agent ``name``: ``none`` or ``L0`` to ``L4``; raises StopIteration if there is none."""
        return next(str(c["class"]) for c in self.document["candidates"] if c["name"] == name)


class Verdict(NamedTuple):
    """Verdict on one agent at one level of randomness: whether it passed (None: the level is unavailable), and why."""

    passed: bool | None
    reason: str


class LevelScores:
    """Scores of all policies at one level, in S seeds of E episodes.

    Episodes of one seed depend on each other; where several contenders take turns, so do all episodes of one contender.

    Args:
        level: the level of randomness.
        records: results by policy, one per seed.
        heuristics: names of the policies that are heuristics.
        settings: confidence level and equivalence margin.
        turns: number of contenders, by the candidate's name.

    Attributes:
        scores: undiscounted returns by policy, [S, E].
        outcomes: O outcomes in users' units by policy, [S, E, O].
        best: name of the heuristic of the highest mean return.
    """

    def __init__(
        self,
        level: Level,
        records: Mapping[str, Sequence[Record]],
        heuristics: Sequence[str],
        settings: Settings,
        turns: Mapping[str, int],
    ) -> None:
        self.level, self.records, self.settings, self.turns = level, dict(records), settings, turns
        self.scores: dict[str, Floats] = {
            name: np.array([record.returns for record in played], np.float64) for name, played in records.items()
        }
        self.outcomes = {name: np.array([record.outcomes for record in played]) for name, played in records.items()}
        self.best = max(heuristics, key=lambda name: float(self.scores[name].mean()))

    def rename(self, name: str, other: str) -> None:
        """Rename the policy ``name`` to ``other`` in all scores; do nothing where it did not play."""
        names = {one: other if one == name else one for one in self.scores}
        self.records = {names[one]: played for one, played in self.records.items()}
        self.scores = {names[one]: values for one, values in self.scores.items()}
        self.outcomes = {names[one]: values for one, values in self.outcomes.items()}

    def mean(self, name: str) -> float:
        """Return a policy's mean return over its S · E episodes."""
        return float(self.scores[name].mean())

    @property
    def equivalence(self) -> Equivalence:
        """Equivalence margin, a share of the best heuristic's mean return, for comparisons with that heuristic."""
        return Equivalence(self.settings.equivalence_margin, self.mean(self.best))

    def ahead(self, name: str) -> Floats:
        """Return a policy's returns minus the best heuristic's in the same episodes, [S, E]."""
        return self.scores[name] - self.scores[self.best]

    def clusters(self, name: str, values: Floats) -> Clusters:
        """Return the cluster of each of a policy's ``values`` [S, …], flattened in C order, for confidence intervals.

        Values of a cluster depend on each other: those of one seed (its index), or, if K > 1 contenders take turns
        under this ``name``, those of one contender (the seed's index modulo K). S is at least 1.
        """
        seeds = np.arange(len(values))
        turns = self.turns.get(name, 1)
        return np.repeat(seeds if turns == 1 else seeds % turns, values[0].size)

    def interval(self, name: str, values: Floats) -> Interval:
        """Return the mean of a policy's ``values`` [S, …] with its confidence interval."""
        return estimate(values.ravel(), self.clusters(name, values)).interval(self.settings.confidence)

    def share(self, name: str, values: Floats) -> Interval:
        """Return the mean of a policy's ``values`` [S, E] in 0 to 1, with its confidence interval within 0 to 1."""
        return share_interval(values.ravel(), self.clusters(name, values), self.settings.confidence)

    def advantage(self, name: str) -> Interval:
        """Return a policy's mean paired return minus the best heuristic's, with its confidence interval."""
        return self.interval(name, self.ahead(name))

    def later(self, name: str, outcomes: Sequence[Outcome]) -> str:
        """Return in words which targets a policy misses more often than the best heuristic, beyond chance."""
        ours, theirs = (self.outcomes[who].reshape(-1, len(outcomes)) for who in (name, self.best))
        clusters = self.clusters(name, self.scores[name])
        margin, sure = self.settings.equivalence_margin, self.settings.confidence
        return later(outcomes, ours, theirs, margin, clusters, sure=sure)

    def improvement(self, name: str) -> Interval:
        """Return the share of episodes with a higher return than the best heuristic's (ties: half), with interval."""
        return self.share(name, wins(self.scores[name], self.scores[self.best]))

    @cached_property
    def scale(self) -> float | None:
        """Difference between the mean returns of the best heuristic and the random policy; None unless positive."""
        span = self.mean(self.best) - self.mean(RANDOM)
        return span if span > 1e-12 else None

    def normalised(self, name: str) -> Floats | None:
        """Return the returns [S, E] scaled to means of 0 (random) and 1 (best heuristic); None without `scale`."""
        return None if self.scale is None else (self.scores[name] - self.mean(RANDOM)) / self.scale

    def outcome_intervals(self, name: str, outcomes: Sequence[Outcome]) -> dict[str, dict[str, float]]:
        """Return ``mean``, ``low`` and ``high`` of each outcome of a policy in users' units, by the outcome's name.

        Intervals of outcomes that are not negative in any episode (times, amounts, costs) start at 0 or above.
        """
        intervals = {}
        for one, values in zip(outcomes, np.moveaxis(self.outcomes[name].astype(np.float64), 2, 0), strict=True):
            between = (self.share if one.unit == SHARE else self.interval)(name, values)
            low = between.low if (values < 0).any() else max(between.low, 0.0)
            intervals[one.name] = between._replace(low=low).as_dict()
        return intervals

    def figures(self, name: str, terms: Sequence[str], outcomes: Sequence[Outcome]) -> dict[str, Any]:
        """Return a policy's JSON at a level: ``outcomes``, ``return``, ``iqm``, ``advantage`` and
        ``probability_of_improvement`` (intervals), ``terms``, ``guarded``, ``normalised``.

        ``terms``: names of the reward's terms; ``outcomes``: names and units of the outcomes.
        """
        values, records, normalised = self.scores[name], self.records[name], self.normalised(name)
        middle = interquartile(values.ravel(), self.clusters(name, values))
        guarded = [record.details["guarded"] for record in records]
        mean_terms = np.mean([record.details["terms"] for record in records], axis=0)
        return {
            "outcomes": self.outcome_intervals(name, outcomes),
            "return": self.interval(name, values).as_dict(),
            "iqm": middle.interval(self.settings.confidence).as_dict(),
            "terms": dict(zip(terms, map(float, mean_terms), strict=True)),
            "guarded": None if None in guarded else float(np.mean(guarded)),
            "advantage": self.advantage(name).as_dict(),
            "probability_of_improvement": self.improvement(name).as_dict(),
            "normalised": None if normalised is None else float(normalised.mean()),
        }

    def profiles(self) -> dict[str, Any] | None:
        """Return the performance profiles of all policies as JSON: shares of episodes (0 to 1) above normalised scores.

        None where scores cannot be normalised.
        """
        if self.scale is None:
            return None
        scores = {name: (values - self.mean(RANDOM)) / self.scale for name, values in self.scores.items()}
        low, high = np.quantile(np.concatenate(list(scores.values())), [0.01, 0.99])
        tau = np.linspace(low, high, PROFILE_POINTS)
        drawn = {n: profile(s.ravel(), tau, self.clusters(n, s), self.settings.confidence) for n, s in scores.items()}
        rows = {n: dict(zip(("share", "low", "high"), rows.tolist(), strict=True)) for n, rows in drawn.items()}
        return {"level": self.level.label, "tau": tau.tolist(), "policies": rows}


class Summary:
    """Builder of the JSON document of an evaluation.

    Args:
        problem: the workload.
        candidates: the agents under evaluation.
        everybody: all policies in display order.
        settings: size and statistics of the evaluation.
        played: records by level and policy, one per seed; empty where all candidates have to be trained again.
    """

    def __init__(
        self,
        problem: Problem,
        candidates: Sequence[Candidate],
        everybody: Sequence[PolicyEntry],
        settings: Settings,
        played: Played,
    ) -> None:
        self.problem, self.candidates, self.everybody, self.settings = problem, candidates, everybody, settings
        rules = [one.name for one in everybody if one.role == "heuristic"]
        turns = {one.name: len(one.contenders) for one in candidates}
        self.level_scores = {
            level: LevelScores(level, records, rules, settings, turns) for level, records in played.items()
        }
        self.world = problem.world(1, settings.seed)
        self.optima = {
            level: _unbeaten(problem.optimum(level, settings.seed), scored)
            for level, scored in self.level_scores.items()
        }
        for level, optimum in self.optima.items():
            if not optimum.exact:
                self.level_scores[level].rename(OPTIMUM, PLAN)
        if any(PLAN in scored.scores for scored in self.level_scores.values()):
            after = 1 + [one.name for one in everybody].index(OPTIMUM)
            self.everybody = [*everybody[:after], PolicyEntry(PLAN, PLAN, PLANNED), *everybody[after:]]

    def document(self, checked: Mapping[str, Any], tuned: Any, seconds: float) -> dict[str, Any]:
        """Build the evaluation's JSON: settings, scores by level and policy, each candidate's class and verdict, plots.

        Args:
            checked: result of the aliasing check, by candidate's name.
            tuned: result of the tuner as JSON; None: it did not run.
            seconds: wall-clock duration of the evaluation.
        """
        problem = self.problem
        profiles = [self.level_scores[level].profiles() for level in PROFILED if level in self.level_scores]
        return {
            "schema": SCHEMA,
            "kind": problem.kind,
            "workload": problem.name,
            "settings": self.settings.as_dict(),
            "outcomes": [outcome.document() for outcome in problem.outcomes],
            "terms": list(problem.terms),
            "term_weights": dict(zip(problem.terms, map(float, problem.weights), strict=True)),
            "levels": [self._level(level) for level in Level],
            "policies": [one._asdict() for one in self.everybody],
            "candidates": [self._candidate(one, checked.get(one.name)) for one in self.candidates],
            "profiles": [drawn for drawn in profiles if drawn is not None],
            "pictures": self._pictures(),
            "tuner": tuned,
            "seconds": seconds,
        }

    def _pictures(self) -> dict[str, Any] | None:
        """Return plots of the one episode of L0 (nothing is random), played by candidates, best heuristic and optimum.

        None if no level was played, or the kind draws none.
        """
        if not self.level_scores:
            return None
        shown: dict[str, bytes | Policy] = {one.name: one.contenders[0] for one in self.candidates if not one.outdated}
        fixed = self.level_scores[Level.FIXED]
        shown[fixed.best] = self.problem.heuristics[fixed.best]
        best = self.optima[Level.FIXED].policy
        named = {} if best is None else {_name(self.optima[Level.FIXED]): best}
        return self.problem.pictures({**shown, **named}, self.settings.seed)

    def _unavailable(self, level: Level) -> str | None:
        none = None if self.level_scores else NOTHING_PLAYED
        return self.settings.skip_reason(level) or self.problem.unavailable(level) or none

    def _level(self, level: Level) -> dict[str, Any]:
        title = TITLES[level][0]
        scored, reason = self.level_scores.get(level), self._unavailable(level)
        return {
            "level": level.label,
            "title": title,
            "description": self.problem.description(level),
            "wrappers": [wrapper.name for wrapper in applicable_wrappers(level, self.world)],
            "available": scored is not None,
            "reason": reason,
            "episodes": 0 if scored is None else scored.scores[scored.best].size,
            "best_heuristic": None if scored is None else scored.best,
            "optimum": _optimum_json(self.optima.get(level, LevelOptimum(reason=reason))),
            "policies": {}
            if scored is None
            else {name: scored.figures(name, self.problem.terms, self.problem.outcomes) for name in scored.scores},
        }

    def _outdated_sentence(self, candidate: Candidate) -> str:
        """Return why a candidate is outdated (to be trained again), with the remedy; empty where it is not."""
        if candidate.outdated:
            return candidate.outdated
        played = self.level_scores[Level.TRAIN].records[candidate.name]
        shares = [record.details["guarded"] for record in played]
        guarded = 0.0 if None in shares else float(np.mean(shares))
        text = f"outdated: retrain (the guard answered in its place in {percent(guarded)} of decisions)"
        return text if guarded > MOST_GUARDED else ""

    def _candidate(self, candidate: Candidate, aliasing: Any) -> dict[str, Any]:
        if outdated := self._outdated_sentence(candidate):
            text = f"{candidate.name} is {outdated}. Nothing of it is assessed."
            known = {"name": candidate.name, "class": "none", "verdict": text, "outdated": outdated, "levels": []}
            return known | {"heat_map": None, "aliasing": {"checked": False, "reason": "it is outdated"}, "curve": None}
        verdicts: dict[Level, Verdict] = {level: self._verdict(candidate.name, level) for level in CLASSES}
        reached = _class(verdicts)
        seeds = self.level_scores.get(Level.SEEDS)
        heat = [] if seeds is None else [r.heat for r in seeds.records[candidate.name] if r.heat is not None]
        return {
            "name": candidate.name,
            "class": "none" if reached is None else reached.label,
            "verdict": _verdict_text(candidate.name, reached, verdicts),
            "outdated": None,
            "levels": [self._pass_entry(candidate.name, level, verdicts[level]) for level in CLASSES],
            "heat_map": heat_map_json(self.problem, np.sum(heat, axis=0)) if heat else None,
            "aliasing": aliasing,
            "curve": [list(point) for point in candidate.curve] or None,
        }

    def _verdict(self, name: str, level: Level) -> Verdict:
        """Return whether and why an agent passed a level of randomness."""
        scored = self.level_scores.get(level)
        if scored is None:
            return Verdict(None, str(self._unavailable(level)))
        ahead = scored.advantage(name)
        best = scored.best.replace("_", " ")
        comparison = (
            f"the best heuristic ({best}): {self._outcomes_in_words(name, scored)}"
            f"return {decimals(scored.mean(name), 5)} against {decimals(scored.mean(scored.best), 5)} "
            f"(difference {decimals(ahead.mean, 5, signed=True)}, {percent(self.settings.confidence, 0)} interval "
            f"{decimals(ahead.low, 5, signed=True)} to {decimals(ahead.high, 5, signed=True)}; {scored.equivalence})"
        )
        late = scored.later(name, self.problem.outcomes)
        if scored.equivalence.as_good(ahead.as_dict()) and not late:
            return Verdict(True, f"at least as good as {comparison}")
        if level is Level.FIXED and self._verdict(name, Level.SEEDS).passed:
            return Verdict(True, f"behind in this one episode, but not in those of L1; against {comparison}")
        doubt = f"more targets missed: {late}; against" if late else "not shown to be at least as good as"
        return Verdict(False, f"{doubt} {comparison}")

    def _outcomes_in_words(self, name: str, scored: LevelScores) -> str:
        """Return the mean outcomes of an agent and of the best heuristic at a level of randomness, in words."""
        ours, theirs = (scored.outcomes[who].mean(axis=(0, 1)) for who in (name, scored.best))
        return "".join(
            f"{one.name} {amount(mine, one.unit)} against {amount(other, one.unit)}, "
            for one, mine, other in zip(self.problem.outcomes, ours.tolist(), theirs.tolist(), strict=True)
        )

    def _pass_entry(self, name: str, level: Level, verdict: Verdict) -> dict[str, Any]:
        scored = self.level_scores.get(level)
        report: dict[str, Any] = {"level": level.label, **verdict._asdict()}
        if scored is None:
            return report | dict.fromkeys(("advantage", "probability_of_improvement", "gap", "gap_to_optimum"))
        return report | {
            "advantage": scored.advantage(name).as_dict(),
            "probability_of_improvement": scored.improvement(name).as_dict(),
            "gap": self._gap(name, scored),
            "gap_to_optimum": self._to_optimum(name, scored),
        }

    def _gap(self, name: str, there: LevelScores) -> dict[str, Any]:
        """Return intervals (training minus this level, paired by seed) of ``return`` and ``advantage``, by name."""
        train = self.level_scores[Level.TRAIN]

        def gap(ours: Floats, theirs: Floats) -> dict[str, float]:
            return there.interval(name, ours.mean(axis=1) - theirs.mean(axis=1)).as_dict()

        return {
            "return": gap(train.scores[name], there.scores[name]),
            "advantage": gap(train.ahead(name), there.ahead(name)),
        }

    def _to_optimum(self, name: str, scored: LevelScores) -> float | None:
        if not self.optima[scored.level].exact:
            return None
        best = scored.mean(OPTIMUM)
        return (best - scored.mean(name)) / max(abs(best), 1e-12)


def _unbeaten(optimum: LevelOptimum, scored: LevelScores) -> LevelOptimum:
    """Return the optimum, marked as not exact if another policy beats it on the level's episodes (`judge.refute`)."""
    if not optimum.exact or OPTIMUM not in scored.scores:
        return optimum
    others = {name: values.ravel() for name, values in scored.scores.items() if name != OPTIMUM}
    best = scored.scores[OPTIMUM]
    doubt = refute(best.ravel(), others, scored.clusters(OPTIMUM, best))
    return optimum if doubt is None else optimum._replace(exact=False, reason=doubt)


def _name(optimum: LevelOptimum) -> str:
    return OPTIMUM if optimum.exact else PLAN


def _optimum_json(optimum: LevelOptimum) -> dict[str, Any]:
    there = optimum.policy is not None
    report = {"exact": optimum.exact, "expected": optimum.expected, "error": optimum.error, "reason": optimum.reason}
    return {"available": there, "policy": _name(optimum) if there else None, **report}


def _class(verdicts: Mapping[Level, Verdict]) -> Level | None:
    """Return the highest level such that it and all levels below were passed; None if L0 was not."""
    reached = None
    for level in CLASSES:
        if not verdicts[level].passed:
            return reached
        reached = level
    return reached


def _verdict_text(name: str, reached: Level | None, verdicts: Mapping[Level, Verdict]) -> str:
    stopped = next((level for level in CLASSES if not verdicts[level].passed), None)
    if reached is None:
        return f"{name} reaches no robustness level: {verdicts[Level.FIXED].reason}."
    if stopped is None:
        return f"{name} reaches robustness level {reached.label}, the highest: {verdicts[reached].reason}."
    title = TITLES[stopped][0]
    return (
        f"{name} reaches robustness level {reached.label} ({TITLES[reached][0]}): {verdicts[reached].reason}. "
        f"Level {stopped.label} ({title}) is not reached: {verdicts[stopped].reason}."
    )
