"""Learned rules of placement: drawn at random, played on generated workflows, and chosen to complement each other."""

import numpy as np

from app.kinds.workflow.scheduling.planning import Problem
from app.kinds.workflow.scheduling.portfolio import MADE, LearnedRule, learned, length, rule_inputs, rules
from app.kinds.workflow.scheduling.ranks import Floats
from workers.kinds.workflow.simulator.generated import generated
from workers.kinds.workflow.simulator.planner import plan


def drawn(random: np.random.Generator) -> LearnedRule:
    """Any taste; a half of each number's draws leave it at what HEFT has."""

    def maybe(usual: float, low: float, high: float) -> float:
        return usual if random.uniform() < 0.5 else round(float(random.uniform(low, high)), 2)

    return LearnedRule(
        transfer=maybe(1.0, 0.0, 3.0),
        fastest=maybe(0.0, 0.0, 1.0),
        optimism=maybe(0.0, 0.0, 1.0),
        depth=maybe(0.0, -0.5, 1.0),
        foresight=maybe(0.0, 0.0, 1.5),
        waste=maybe(0.0, 0.0, 1.0),
        share=maybe(1.0, 0.0, 1.0),
    )


def ratios(given: Problem, learned_rules: list[LearnedRule]) -> tuple[float, Floats]:
    """Of one workflow: the best published rule's plan, and those of ``tastes`` [K], each over HEFT's."""
    published = [length(plan(given, rule)) for rule in rules(given, ())]
    seen = rule_inputs(given)
    own = np.array([length(plan(given, learned(given, seen, learned_rule))) for learned_rule in learned_rules])
    heft = published[MADE.index("heft")]
    return min(published) / heft, own / heft


def chosen(best: Floats, played: Floats, count: int) -> list[int]:
    """``count`` of K rules, one after the other: always that which lowers the geometric mean of the best the most.

    ``best`` is what there is without them, over HEFT's, on each of W workflows [W]; ``played`` is each rule's, [W, K].
    """
    picked: list[int] = []
    for _ in range(count):
        together = np.log(np.minimum(best[:, None], played)).mean(axis=0)
        picked.append(int(np.argmin(together)))
        best = np.minimum(best, played[:, picked[-1]])
    return picked


def tuned(
    random: np.random.Generator, workflows: int, candidates: int, count: int
) -> tuple[tuple[LearnedRule, ...], Floats]:
    """``count`` learned rules of so many ``candidates``, and what 0, 1, 2, … of them reach over HEFT, [count + 1]."""
    learned_rules = [drawn(random) for _ in range(candidates)]
    made = [ratios(generated(random, int(np.exp(random.uniform(2.5, 5.5)))), learned_rules) for _ in range(workflows)]
    best, played = np.array([first for first, _ in made]), np.stack([own for _, own in made])
    picked = chosen(best, played, count)
    reached = [float(np.exp(np.log(best).mean()))]
    for one in picked:
        best = np.minimum(best, played[:, one])
        reached.append(float(np.exp(np.log(best).mean())))
    return tuple(learned_rules[one] for one in picked), np.array(reached)
