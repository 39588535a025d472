"""Conclusion of a training (choice and verdict), warm starts, and baselines' returns for comparison."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter, process_time
from typing import Any, cast

import numpy as np

from app.kinds.contract.policy import Policy
from app.policies.artifact import SHARED
from app.policies.base import IncompatibleArtifact
from workers.learning.agent import Agent
from workers.learning.simulator import JointSimulator, Situated, demonstrate
from workers.learning.training.driver import PlannedPolicy, TrainedAgent, TrainingProblem
from workers.learning.training.request import PLANNER, STEPS, Request, TrialRecord, Untrainable, best


@dataclass(frozen=True)
class Contender:
    """A trial at its end.

    Attributes:
        record: the trial's number of comparisons, score, and reason of its end.
        share: used share of the trial's budget, 0 to 1.
        artifact: artifact of the trial's best policy; None if it has none.
        report: the trial's `Trial.report`.
    """

    record: TrialRecord
    share: float
    artifact: bytes | None
    report: dict[str, Any] = field(default_factory=dict)


def conclude(
    problem: TrainingProblem,
    request: Request,
    contenders: Sequence[Contender],
    planned: PlannedPolicy,
    champion: bytes | None,
    clock: Callable[[], float] = perf_counter,
) -> TrainedAgent:
    """Choose the best contender or the plan, calibrate it, and judge it.

    Args:
        problem: the training problem, which judges.
        request: the training request.
        contenders: all trials at their end.
        planned: the plan; it competes if the request says so.
        champion: artifact of the current champion, which has to be beaten; None: a heuristic is in use.
        clock: function that returns monotonic seconds.

    Raises:
        Untrainable: there is nothing to publish.
    """
    begun = clock()
    records = [contender.record for contender in contenders]
    reference = planned.reference if request.plans else None
    learner = best(records)
    chosen = best(records, reference)
    if chosen is None and reference is None:
        raise Untrainable(_nothing(request, records, planned))
    name = planned.name if chosen is None else records[chosen].entry.algorithm
    drawn = request.seed if chosen is None else records[chosen].entry.seed
    artifact = problem.calibrate(_artifact(contenders, planned, chosen))
    verdict = problem.judge(artifact, planned, champion, request.equivalence_margin)
    report = {"algorithm": name, "requested": request.algorithm, "seed": drawn, **verdict}
    report |= _effort(contenders, learner) | {"learned": _unguarded_results(problem, contenders, planned, learner)}
    report |= {"candidates": _candidates(records, planned if request.plans else None)}
    report |= {"parent": None if request.start is None else request.start.version}
    report |= {"bracket": _bracket(contenders, planned if request.plans else None, chosen)}
    return TrainedAgent(artifact, report | {"judging_seconds": clock() - begun})


def _nothing(request: Request, records: Sequence[TrialRecord], planned: PlannedPolicy) -> str:
    if planned.nothing_to_win and not request.force:
        return f'{planned.nothing_to_win}; train all the same with "force": true'
    if not records:
        return f"the planner can't plan this workload: {planned.why_not}"
    reasons = "; ".join(dict.fromkeys(f"{s.entry.algorithm}: {s.ended}" for s in records))
    return f"no trial of {request.algorithm} came to anything: {reasons}"


def _artifact(contenders: Sequence[Contender], planned: PlannedPolicy, chosen: int | None) -> bytes:
    artifact = planned.artifact if chosen is None else contenders[chosen].artifact
    if artifact is None:
        raise Untrainable("the best trial has left no policy")
    return artifact


def _unguarded_results(
    problem: TrainingProblem, contenders: Sequence[Contender], planned: PlannedPolicy, learner: int | None
) -> dict[str, Any] | None:
    """Return algorithm, seed, returns and ``gap_to_optimum`` of trial ``learner``, by name; None without a trial.

    Raises:
        Untrainable: the trial has no policy.
    """
    if learner is None:
        return None
    entry = contenders[learner].record.entry
    return {"algorithm": entry.algorithm, "seed": entry.seed} | problem.evaluate_unguarded(
        _artifact(contenders, planned, learner), planned
    )


def _effort(contenders: Sequence[Contender], best_learner: int | None) -> dict[str, Any]:
    if best_learner is None:
        return {}
    effort = {
        name: sum(contender.report.get(name, 0) for contender in contenders)
        for name in ("environment_steps", "updates", "seconds")
    }
    return {**contenders[best_learner].report, **effort}


def _candidates(records: Sequence[TrialRecord], planned: PlannedPolicy | None) -> dict[str, float]:
    """Return the validation return of each algorithm's best seed, and of a plan, by name."""
    candidates: dict[str, float] = {}
    for record in records:
        if record.score is not None:
            name = record.entry.algorithm
            candidates[name] = max(record.score, candidates.get(name, record.score))
    if planned is not None and planned.reference is not None:
        candidates[planned.name] = planned.score
    return candidates


def _bracket(
    contenders: Sequence[Contender], planned: PlannedPolicy | None, chosen: int | None
) -> list[dict[str, Any]]:
    """Return a JSON row for each trial and the plan: comparisons, budget share (0 to 1), score, why it ended."""
    rows = [
        {
            "algorithm": contender.record.entry.algorithm,
            "seed": contender.record.entry.seed,
            "rungs": contender.record.rungs,
            "share": contender.share,
            "steps": contender.report.get("environment_steps", 0),
            "seconds": contender.report.get("seconds", 0.0),
            "score": contender.record.score,
            "ended": contender.record.ended or None,
            "chosen": position == chosen,
        }
        for position, contender in enumerate(contenders)
    ]
    if planned is not None:
        rows.append(
            {
                "algorithm": planned.name,
                "seed": None,
                "rungs": 0,
                "share": 1.0,
                "steps": 0,
                "seconds": None,
                "score": None if planned.reference is None else planned.score,
                "ended": planned.why_not or None,
                "chosen": chosen is None,
            }
        )
    return rows


# Initialisation of an agent: by an earlier agent's parameters, or by imitation of an expert.


DEMONSTRATIONS = 16_384  # about how many environment steps of the expert
FEWEST = 16  # fewest environments of the expert
LOOK_AHEAD = 8  # slabs beyond an episode's decisions, so that n-step windows include its end
LEARNED = (SHARED["network"], SHARED["table"])


def take_over(agent: Agent, problem: TrainingProblem, request: Request) -> None:
    """Warm-start an agent from the published agent in the request; do nothing if there is none.

    Raises:
        Untrainable: the published policy does not fit the agent, or was not learned.
    """
    start = request.start
    if start is None:
        return
    try:
        policy = problem.load(start.artifact)
        learned = isinstance(policy, LEARNED)
        if learned:
            agent.start_from(policy.arrays, policy.config)
    except (ValueError, IncompatibleArtifact) as error:
        raise Untrainable(f"can't continue agent {start.version}: {error}") from error
    if not learned:
        raise Untrainable(f"agent {start.version} is a {policy.name}: it can't be continued")


def imitate(
    agent: Agent, problem: TrainingProblem, request: Request, seed: int, planned: PlannedPolicy | None
) -> dict[str, Any] | None:
    """Let an agent imitate the request's expert; return the expert's name, updates and mean loss, or None without one.

    Raises:
        Untrainable: the expert is unknown, or this algorithm cannot imitate.
    """
    if request.imitate is None:
        return None
    model = expert(request.imitate, problem, planned)
    batch = max(FEWEST, DEMONSTRATIONS // problem.length)
    worlds, draws = np.random.SeedSequence([seed, 1]).generate_state(2)
    simulator = cast("Situated", problem.simulator(batch, int(worlds)).make())
    slabs = demonstrate(simulator, model, problem.length + LOOK_AHEAD)
    try:
        stats = agent.imitate(slabs, np.random.default_rng(draws))
    except ValueError as error:
        raise Untrainable(f"can't imitate {request.imitate}: {error}") from error
    return {"expert": request.imitate, "updates": stats.updates, "loss": stats.loss}


def expert(name: str, problem: TrainingProblem, planned: PlannedPolicy | None) -> Policy:
    """Return the expert policy of that name: a baseline of the kind, or the plan for ``planner``.

    Raises:
        Untrainable: no expert has that name, or there is no plan.
    """
    if name == PLANNER:
        if planned is None or not planned.artifact:
            reason = "" if planned is None else f": {planned.why_not}"
            raise Untrainable(f"the planner can't be imitated, as it can't plan this workload{reason}")
        policy: Policy = problem.load(planned.artifact)
        return policy
    known = problem.experts()
    if name not in known:
        raise Untrainable(f"unknown expert {name!r}; known are {', '.join([*known, PLANNER])}")
    return known[name]


# Returns of experts and plan in the learners' simulator, for comparison during learning.
#
# Returns of a verdict cannot serve for that, since learners' rewards are shaped and scaled, and of other episodes.


EPISODES = 32
SECONDS = 3.0
"""Processor seconds after which no further baseline is played, since its return is only shown to users."""
WORTH_STEPS = 50_000
"""Environment steps from which a training is long enough for baselines to be displayed."""


def worthwhile(request: Request) -> bool:
    """Return whether a training has at least 50,000 steps (`WORTH_STEPS`), so that baselines are shown during it."""
    return (request.budget or STEPS) >= WORTH_STEPS


def yardsticks(
    problem: TrainingProblem,
    request: Request,
    planned: PlannedPolicy | None,
    clock: Callable[[], float] = process_time,
) -> dict[str, float]:
    """Return the mean returns, in the learners' reward, of experts and plan in the learners' simulator, by name.

    Policies that cannot act there are left out, and so are those that come after 3 processor seconds (`SECONDS`) by
    ``clock``. Empty for a short training.
    """
    if not worthwhile(request):
        return {}
    simulator: Any = problem.simulator(EPISODES, request.seed).make_any()
    if isinstance(simulator, JointSimulator) or not hasattr(type(simulator), "situation"):
        return {}
    ends, values = clock() + SECONDS, dict[str, float]()
    for name, policy in _others(problem, planned).items():
        if clock() > ends:
            break
        paid = _paid(cast("Situated", simulator), policy, 2 * problem.length)
        if paid is not None:
            values[name] = paid
    return values


def _others(problem: TrainingProblem, planned: PlannedPolicy | None) -> Mapping[str, Policy]:
    several = {id(policy): (name, policy) for name, policy in reversed(list(problem.experts().items()))}
    others = dict(reversed(list(several.values())))
    if planned is None or not planned.artifact:
        return others
    # No optimum here: it is that of the domain model, but learners' simulators disturb runs and shape the rewards.
    return {"plan" if planned.name == PLANNER else planned.name: problem.load(planned.artifact), **others}


def _paid(simulator: Situated, policy: Policy, most: int) -> float | None:
    """Return the mean return of first episodes that end in ``most`` steps; None if none, or for an illegal action."""
    _, mask = simulator.reset()
    returns, over = np.zeros(simulator.batch), np.zeros(simulator.batch, np.bool_)
    for _ in range(most):
        action = np.asarray(policy.act(simulator.situation).action, np.int64)
        if not mask[np.arange(len(action)), action].all():
            return None
        step = simulator.step(action)
        returns += np.where(over, 0.0, step.reward)
        over |= step.done
        mask = step.mask
        if over.all():
            break
    return float(returns[over].mean()) if over.any() else None
