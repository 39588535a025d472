"""The verdict on a scheduler: the artifact that will answer, played beside every strategy on sequences of its own."""

from typing import Any

from app.kinds.workflow.policies.artifact import load
from app.kinds.workflow.policies.schedulers import StrategyPolicy
from app.kinds.workflow.scheduling.rules import RULES
from workers.evaluation.judge import Judgement
from workers.evaluation.statistics import mean_interval
from workers.kinds.workflow.training.sequences import Sequence, measured


def judge(artifact: bytes, sequences: list[Sequence], champion: bytes | None = None) -> dict[str, Any]:
    """The artifact beside all rules and the champion, paired by sequence: the agent report's ``return`` to ``reason``.

    A return is a loss with its sign changed.
    """
    rules = {name: -measured(StrategyPolicy({"rule": name}), sequences) for name in RULES}
    present = None if champion is None else -measured(load(champion), sequences)
    verdict = Judgement(-measured(load(artifact), sequences), rules, present)
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
