"""The tables of a training's report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from app.charts.text import amount
from workers.evaluation.report.charts import Palette
from workers.evaluation.report.markup import Markup, element, safe, table
from workers.evaluation.report.wording import NOTHING, count, interval, number, percent

Json = dict[str, Any]
AGENT, OPTIMUM = "agent", "optimum"
SHOWN = {"algorithm", "seed", "version", "promoted", "reason", "best_heuristic", "incumbent", "episodes", "sequences"}
SHOWN |= {"gap_to_optimum", "optimum_reason", "judge"}


class ScoreTable(NamedTuple):
    """What an agent is measured by, and everybody's score with its interval.

    Attributes:
        least: whether the least is the best.
        steps, learning: what the learning curve is over, and of.
    """

    measure: str
    least: bool
    steps: str
    learning: str
    scores: Mapping[str, Json]


def score_table(report: Json) -> ScoreTable:
    """Schedulers are told by their slowdown, all others by their return."""
    rules = report.get("heuristics") or {}
    for unit, loss in _losses(report).items():
        steps, learning = "steps of the search", "Loss while learning, as a share of the base strategy's,"
        return ScoreTable(unit, True, steps, learning, {AGENT: loss, **rules})
    own = {AGENT: report.get("return"), OPTIMUM: report.get("optimum")}
    scores = {**{name: found for name, found in own.items() if found}, **rules}
    return ScoreTable("return", False, "environment steps", "Return while learning", scores)


def _losses(report: Json) -> dict[str, Json]:
    """What a scheduler is judged by, in words: mean bounded slowdown, or all terms of its workload's objective."""
    terms = report.get("terms") or {}
    units = {"slowdown": "bounded slowdown", "objective": "weighted terms of the objective"}
    return {unit: terms[term] for term, unit in units.items() if isinstance(terms.get(term), dict)}


def palette(report: Json) -> Palette:
    """The agent stands out from what it is compared with."""
    roles = {AGENT: "candidate", OPTIMUM: "optimum"}
    names = dict.fromkeys([AGENT, *score_table(report).scores])
    return Palette([{"name": name, "role": roles.get(name, "heuristic")} for name in names])


def under(report: Json) -> str:
    """Who it is, and what it was judged on."""
    judged = {noun: report[noun] for noun in ("episodes", "sequences") if noun in report}
    judged_on = [f"judged on {count(amount)} {noun}" for noun, amount in judged.items()]
    return "; ".join([f"{report.get('algorithm')}, seed {report.get('seed')}", *judged_on]) + "."


def verdict(report: Json) -> Markup:
    """Whether it was promoted when its training ended, and why or why not; ``now``: what holds of it at present."""
    now = [element("p", element("strong", line)) for line in report.get("now", ())]
    badge = element("span", "promoted" if report.get("promoted") else "not promoted", class_="class")
    when = element("p", "When its training ended:")
    why = element("p", str(report.get("reason", NOTHING)))
    return element("div", *now, when, element("p", badge), why, class_="card")


def outcomes(report: Json) -> Markup:
    """What users count, of the agent and of what it was held against."""
    rows = report.get("outcomes") or []
    if not rows:
        return Markup("")
    names = list(rows[0]["policies"])
    cells = [[row["name"], *(amount(row["policies"][name]["mean"], row["unit"]) for name in names)] for row in rows]
    return table(["mean per episode", *names], cells)


def score_rows(report: Json) -> Markup:
    """Everybody's score, the best first."""
    found = score_table(report)
    names = sorted(found.scores, key=lambda name: float(found.scores[name]["mean"]), reverse=not found.least)
    rows = [[_named(name, report), interval(dict(found.scores[name]))] for name in names]
    return table(["policy", f"mean {found.measure}"], rows, marked=[names.index(AGENT)] if AGENT in names else [])


def _named(name: str, report: Json) -> str:
    best = name == report.get("best_heuristic")
    return element("span", name, " ", element("small", "best heuristic")) if best else safe(name)


def gains(report: Json) -> Markup:
    """What it earns over its rivals on the same episodes, and what it leaves to the exact optimum."""
    gained = {"the best heuristic": report["advantage"]} if report.get("advantage") else {}
    gained |= {_incumbent(report): report["gain"]} if report.get("gain") else {}
    rows = [[f"over {who}", interval(gain, signed=True)] for who, gain in gained.items()]
    if report.get("gap_to_optimum") is not None:
        rows.append(["left to the exact optimum", percent(report["gap_to_optimum"])])
    elif report.get("optimum_reason"):
        rows.append(["the exact optimum", str(report["optimum_reason"])])
    return table(["difference", "mean, paired"], rows) if rows else Markup("")


def _incumbent(report: Json) -> str:
    name = report["incumbent"]
    return f"{name}, which answered" if name in (report.get("heuristics") or {}) else str(name)


def terms(report: Json) -> Markup:
    """What the return is made of, where it is made of several."""
    rows = [[name, number(value)] for name, value in (report.get("terms") or {}).items() if isinstance(value, float)]
    return table(["term", "mean per episode"], rows) if rows else Markup("")


def contenders(report: Json) -> Markup:
    """Every trial, how far it came and why it went no further; or the score of each candidate."""
    trials = report.get("bracket") or []
    if not trials:
        rows = [[name, number(score)] for name, score in (report.get("candidates") or {}).items()]
        return table(["candidate", "when compared"], rows) if rows else Markup("")
    head = ["algorithm", "seed", "share of the budget", "steps", "score", "ended"]
    chosen = [position for position, trial in enumerate(trials) if trial["chosen"]]
    return table(head, [_trial(trial) for trial in trials], marked=chosen)


def _trial(trial: Json) -> list[str]:
    ended = trial["ended"] or ("chosen" if trial["chosen"] else "went to its end")
    seed = NOTHING if trial["seed"] is None else str(trial["seed"])
    return [trial["algorithm"], seed, percent(trial["share"]), count(trial["steps"]), number(trial["score"]), ended]


def rest(report: Json) -> Markup:
    """All single figures that stand nowhere else."""
    single = {
        name: value for name, value in report.items() if name not in SHOWN and isinstance(value, int | float | str)
    }
    rows = [[name.replace("_", " "), _single(value)] for name, value in single.items()]
    return table(["what", "value"], rows) if rows else Markup("")


def _single(value: float | str) -> str:
    if isinstance(value, str):
        return value
    return count(value) if isinstance(value, int) else number(value)
