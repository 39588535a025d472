"""The end of a training: the best of all that competed is steadied, judged on fresh episodes, and reported on."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from workers.learning.bracket import TrialRecord, best
from workers.learning.training.driver import TrainedAgent
from workers.learning.training.problem import Planned, TrainingProblem
from workers.learning.training.request import PLANNER, Request, Untrainable


@dataclass(frozen=True)
class Contender:
    """A trial at its end, with its best policy and what is to be reported of it."""

    record: TrialRecord
    share: float
    artifact: bytes | None
    report: dict[str, Any] = field(default_factory=dict)


def conclude(
    problem: TrainingProblem,
    request: Request,
    contenders: Sequence[Contender],
    planned: Planned,
    champion: bytes | None,
    clock: Callable[[], float] = perf_counter,
) -> TrainedAgent:
    """Choose, steady, judge.

    Args:
        planned: a yardstick; a contender where the request wants it to be.
        champion: the artifact that answers now; it must be beaten to be replaced.

    Raises:
        Untrainable: nothing can be published.
    """
    begun = clock()
    records = [contender.record for contender in contenders]
    reference = planned.reference if request.plans else None
    learner = best(records)
    chosen = best(records, reference)
    if chosen is None and reference is None:
        raise Untrainable(_nothing(request, records, planned))
    name = PLANNER if chosen is None else records[chosen].entry.algorithm
    drawn = request.seed if chosen is None else records[chosen].entry.seed
    artifact = problem.calibrate(_artifact(contenders, planned, chosen))
    verdict = problem.judge(artifact, planned, champion, request.equivalence_margin)
    report = {"algorithm": name, "requested": request.algorithm, "seed": drawn, **verdict}
    report |= _effort(contenders, learner) | {"learned": _alone(problem, contenders, planned, learner)}
    report |= {"candidates": _candidates(records, planned if request.plans else None)}
    report |= {"parent": None if request.start is None else request.start.version}
    report |= {"bracket": _bracket(contenders, planned if request.plans else None, chosen)}
    return TrainedAgent(artifact, report | {"judging_seconds": clock() - begun})


def _nothing(request: Request, records: Sequence[TrialRecord], planned: Planned) -> str:
    if not records:
        return f"the planner can't plan this workload: {planned.why_not}"
    reasons = "; ".join(dict.fromkeys(f"{s.entry.algorithm}: {s.ended}" for s in records))
    return f"no trial of {request.algorithm} came to anything: {reasons}"


def _artifact(contenders: Sequence[Contender], planned: Planned, chosen: int | None) -> bytes:
    artifact = planned.artifact if chosen is None else contenders[chosen].artifact
    if artifact is None:
        raise Untrainable("the best trial has left no policy")
    return artifact


def _alone(
    problem: TrainingProblem, contenders: Sequence[Contender], planned: Planned, learner: int | None
) -> dict[str, Any] | None:
    """What the best learner reaches by itself, whoever is published; None where nothing was learned."""
    if learner is None:
        return None
    entry = contenders[learner].record.entry
    return {"algorithm": entry.algorithm, "seed": entry.seed} | problem.alone(
        _artifact(contenders, planned, learner), planned
    )


def _effort(contenders: Sequence[Contender], best_learner: int | None) -> dict[str, Any]:
    """Of the best learner, with the effort of all."""
    if best_learner is None:
        return {}
    effort = {
        name: sum(contender.report.get(name, 0) for contender in contenders)
        for name in ("environment_steps", "updates", "seconds")
    }
    return {**contenders[best_learner].report, **effort}


def _candidates(records: Sequence[TrialRecord], planned: Planned | None) -> dict[str, float]:
    """Validation returns by algorithm: of its best seed."""
    found: dict[str, float] = {}
    for record in records:
        if record.score is not None:
            name = record.entry.algorithm
            found[name] = max(record.score, found.get(name, record.score))
    if planned is not None and planned.reference is not None:
        found[PLANNER] = planned.score
    return found


def _bracket(contenders: Sequence[Contender], planned: Planned | None, chosen: int | None) -> list[dict[str, Any]]:
    """Every trial: how far it came, how good it was, and why it went no further."""
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
                "algorithm": PLANNER,
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
