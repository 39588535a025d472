"""The report's tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from app.charts.text import amount
from workers.evaluation.report.charts import CLASSES
from workers.evaluation.report.markup import Markup, element, safe, table
from workers.evaluation.report.wording import MINUS, NOTHING, count, interval, number, percent, percents

Json = dict[str, Any]
MARKS = {"passed": "✓", "failed": "✗", "unknown": "?", "beyond": "·"}


def level_status(level: Json, own_class: str) -> str:
    """How an agent stands at a level: passed, failed, unknown (it can't be judged), or beyond where it stopped."""
    if level["passed"]:
        within = own_class in CLASSES and CLASSES.index(level["level"]) <= CLASSES.index(own_class)
        return "passed" if within else "beyond"
    return "unknown" if level["advantage"] is None else "failed"


def ladder(candidates: Sequence[Json]) -> Markup:
    """Which agent passed which level, and why not."""
    head = ["agent", *CLASSES, "class"]
    rows = []
    for candidate in candidates:
        by_level = {level["level"]: level for level in candidate["levels"]}
        cells = [_step(by_level.get(name), candidate["class"]) for name in CLASSES]
        rows.append([candidate["name"], *cells, element("strong", candidate["class"])])
    return table(head, rows)


def _step(level: Json | None, own_class: str) -> Markup:
    if level is None:
        return safe(NOTHING)
    how = level_status(level, own_class)
    return element("span", MARKS[how], class_=how, title=str(level["reason"]))


def levels(found: Sequence[Json]) -> Markup:
    """What each level switches on."""
    rows = []
    for level in found:
        text = level["description"] if level["available"] else f"{level['description']} Not played: {level['reason']}"
        switched = ", ".join(level.get("wrappers") or ()) or NOTHING
        rows.append([level["level"], level["title"], text, switched, count(level.get("episodes") or 0)])
    return table(["level", "random is", "in words", "wrappers", "episodes"], rows)


def outcomes(level: Json, counted: Sequence[Json], roles: dict[str, str]) -> Markup:
    """What users count of every policy of one level, the best return first; returns come last."""
    policies = _ranked(level)
    rows = [
        [
            _labelled(name, level["best_heuristic"]),
            *(_amount(found.get("outcomes") or {}, one) for one in counted),
            interval(found["return"]),
        ]
        for name, found in policies
    ]
    own = [index for index, (name, _) in enumerate(policies) if roles.get(name) == "candidate"]
    return table(["policy", *(one["name"] for one in counted), "return"], rows, marked=own)


def _amount(found: Json, outcome: Json) -> str:
    """A mean with its unit, and the interval in brackets."""
    known = found.get(outcome["name"])
    if known is None:
        return NOTHING
    mean, low, high = (amount(known[part], outcome["unit"]).replace("-", MINUS) for part in ("mean", "low", "high"))
    return f"{mean} [{low}, {high}]"


def _ranked(level: Json) -> list[tuple[str, Json]]:
    """Who played a level, the best return first."""
    played = [(name, found) for name, found in level["policies"].items() if found.get("return") is not None]
    return sorted(played, key=lambda item: -item[1]["return"]["mean"])


def _labelled(name: str, best: str | None) -> Markup:
    return element("span", name, " ", element("small", "best heuristic")) if name == best else safe(name)


def scores(level: Json, roles: dict[str, str]) -> Markup:
    """Every policy of one level beside every other, the best return first."""
    policies = _ranked(level)
    rows = [_scores(name, found, level["best_heuristic"]) for name, found in policies]
    own = [index for index, (name, _) in enumerate(policies) if roles.get(name) == "candidate"]
    head = ["policy", "return", "IQM", "over best heuristic", "probability of improvement", "normalised", "guarded"]
    return table(head, rows, marked=own)


def _scores(name: str, found: Json, best: str | None) -> list[str]:
    return [
        _labelled(name, best),
        interval(found["return"]),
        interval(found.get("iqm")),
        interval(found.get("advantage"), signed=True),
        percents(found.get("probability_of_improvement")),
        number(found.get("normalised")),
        percent(found.get("guarded")),
    ]


def gaps(candidates: Sequence[Json]) -> Markup:
    """Train-to-test gap of each agent at each level."""
    rows = []
    for candidate in candidates:
        for level in candidate["levels"]:
            gap = level.get("gap") or {}
            rows.append(
                [
                    f"{candidate['name']}, {level['level']}",
                    interval(gap.get("return"), signed=True),
                    interval(gap.get("advantage"), signed=True),
                    percent(level.get("gap_to_optimum")),
                ]
            )
    return table(["agent, level", "gap of the return", "gap of the advantage", "left to the exact optimum"], rows)


def aliasing(candidates: Sequence[Json]) -> Markup:
    """States that one observation stands for though the right action differs."""
    rows = []
    for candidate in candidates:
        found = candidate.get("aliasing") or {"checked": False, "reason": None}
        if found["checked"]:
            verdict = element("strong", "aliased") if found["aliased"] else safe("no")
            conflicts = f"{count(found['conflicting_observations'])} ({count(found['conflicting_states'])} states)"
            cells = [
                f"{found['encoder']}, by {found['labels']}",
                count(found["states"]),
                count(found["observations"]),
                conflicts,
                percent(found["share_lost"]),
                verdict,
            ]
        else:
            cells = [f"not checked: {found['reason']}", *[NOTHING] * 5]
        rows.append([candidate["name"], *cells])
    head = ["agent", "encoder, labels", "states", "observations", "with conflicting labels", "return lost", "aliased"]
    return table(head, rows)


def examples(candidate: Json) -> Markup:
    """Observations that should have led to different actions."""
    found = (candidate.get("aliasing") or {}).get("examples") or []
    rows = [
        [
            ", ".join(f"{name} {number(value)}" for name, value in example["observation"].items()),
            count(example["states"]),
            ", ".join(f"{action} × {times}" for action, times in example["actions"].items()),
            number(example["value_lost"]),
        ]
        for example in found
    ]
    return table(["observation", "states", "right actions", "return lost"], rows) if rows else Markup("")


def off_policy(found: Json) -> Markup:
    """What each agent would have earned on the runs that really happened."""
    rows = []
    for version, scored in found.items():
        if "replay" not in scored:
            rows.append([f"agent {version}", f"not scored: {scored.get('reason')}", *[NOTHING] * 6])
            continue
        replay, sampled = scored["replay"], scored["importance"]
        rows.append(
            [
                f"agent {version}",
                count(scored["runs"]),
                interval(scored["logged"]),
                interval(replay["return"]),
                interval(replay["advantage"], signed=True),
                interval(sampled["doubly_robust"]),
                number(sampled["effective_sample_size"]) + ("" if sampled["trusted"] else " (too few)"),
                percent(scored["agreement"]),
            ]
        )
    head = ["agent", "runs", "return that was had", "return in replay", "over what was had", "doubly robust"]
    return table([*head, "effective runs", "decides alike"], rows)


def settings(report: Json) -> Markup:
    """What the evaluation was run with."""
    known = {name.replace("_", " "): value for name, value in report["settings"].items()}
    rows = [[name, number(value) if isinstance(value, int | float) else str(value)] for name, value in known.items()]
    return table(["setting", "value"], rows)
