"""HTML tables of evaluations and agents, and the page of a forecast.

Arguments of type ``Json`` are parts of the documents of the API; a missing key raises KeyError.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from app.charts.figures import layer, quantity
from app.charts.text import amount
from app.charts.text import percent as text_percent
from workers.evaluation.report import plots
from workers.evaluation.report.charts import CLASSES, WIDTH, Palette, figure, layers
from workers.evaluation.report.markup import (
    MINUS,
    NOTHING,
    Markup,
    count,
    document,
    element,
    interval,
    join_parts,
    number,
    percent,
    percents,
    safe,
    section,
    table,
    unbroken,
)

Json = dict[str, Any]
MARKS = {"passed": "✓", "failed": "✗", "unknown": "?", "beyond": "·"}


def level_status(level: Json, own_class: str) -> str:
    """Return an agent's status at a level of randomness: passed, failed, unknown (not played), or beyond (passed, but
    above its class ``own_class``)."""
    if level["passed"]:
        within = own_class in CLASSES and CLASSES.index(level["level"]) <= CLASSES.index(own_class)
        return "passed" if within else "beyond"
    return "unknown" if level["advantage"] is None else "failed"


def ladder(candidates: Sequence[Json]) -> Markup:
    """Return a table of the levels of randomness that each agent passed, and its class: the last before one not
    passed."""
    head = ["agent", *CLASSES, "robustness level"]
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


def levels(items: Sequence[Json]) -> Markup:
    """Return a table of an evaluation's levels: what is random, names of its disturbances, number of episodes."""
    rows = []
    for level in items:
        text = level["description"] if level["available"] else f"{level['description']} Not played: {level['reason']}"
        switched = ", ".join(level.get("wrappers") or ()) or NOTHING
        rows.append([level["level"], level["title"], text, switched, count(level.get("episodes") or 0)])
    return table(["level", "random is", "in words", "wrappers", "episodes"], rows)


def outcomes(level: Json, counted: Sequence[Json], roles: dict[str, str]) -> Markup:
    """Return a table of policies' outcomes (``counted``: name, unit), highest return first; ``roles``: by policy."""
    policies = _rank_policies(level)
    rows = [
        [
            _label_policy(name, level["best_heuristic"]),
            *(_amount(policy.get("outcomes") or {}, one) for one in counted),
            interval(policy["return"]),
        ]
        for name, policy in policies
    ]
    own = [index for index, (name, _) in enumerate(policies) if roles.get(name) == "candidate"]
    return table(["policy", *(one["name"] for one in counted), "return"], rows, marked=own)


def _amount(result: Json, outcome: Json) -> str:
    """Format an outcome “mean [low, high]” with its unit; “–” where it is missing."""
    known = result.get(outcome["name"])
    if known is None:
        return NOTHING
    mean, low, high = (amount(known[part], outcome["unit"]).replace("-", MINUS) for part in ("mean", "low", "high"))
    return unbroken(f"{mean} [{low}, {high}]")


def _rank_policies(level: Json) -> list[tuple[str, Json]]:
    played = [(name, policy) for name, policy in level["policies"].items() if policy.get("return") is not None]
    return sorted(played, key=lambda item: -item[1]["return"]["mean"])


def _label_policy(name: str, best: str | None) -> Markup:
    return element("span", name, " ", element("small", "best heuristic")) if name == best else safe(name)


def scores(level: Json, roles: dict[str, str]) -> Markup:
    """Return a table of every policy's scores at one level, by descending return; ``roles`` are by policy's name."""
    policies = _rank_policies(level)
    rows = [
        [
            _label_policy(name, level["best_heuristic"]),
            interval(policy["return"]),
            interval(policy.get("iqm")),
            interval(policy.get("advantage"), signed=True),
            percents(policy.get("probability_of_improvement")),
            number(policy.get("normalised")),
            percent(policy.get("guarded")),
        ]
        for name, policy in policies
    ]
    own = [index for index, (name, _) in enumerate(policies) if roles.get(name) == "candidate"]
    head = [
        "policy",
        "return",
        "IQM",
        "over best heuristic",
        "probability of improvement",
        "normalised",
        "fallback rate",
    ]
    return table(head, rows, marked=own)


def gaps(candidates: Sequence[Json]) -> Markup:
    """Return a table of each agent's gaps by level of randomness: train to test, and to the optimum (per cent)."""
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
    return table(
        ["agent, level", "generalisation gap of the return", "of the advantage", "gap to the exact optimum"], rows
    )


def aliasing(candidates: Sequence[Json]) -> Markup:
    """Return a table of the check for state aliasing, by agent: equal observations whose best actions differ."""
    rows = []
    for candidate in candidates:
        alias = candidate.get("aliasing") or {"checked": False, "reason": None}
        if alias["checked"]:
            verdict = element("strong", "aliased") if alias["aliased"] else safe("no")
            conflicts = f"{count(alias['conflicting_observations'])} ({count(alias['conflicting_states'])} states)"
            cells = [
                f"{alias['encoder']}, by {alias['labels']}",
                count(alias["states"]),
                count(alias["observations"]),
                conflicts,
                percent(alias["share_lost"]),
                verdict,
            ]
        else:
            cells = [f"not checked: {alias['reason']}", *[NOTHING] * 5]
        rows.append([candidate["name"], *cells])
    head = ["agent", "encoder, labels", "states", "observations", "with conflicting labels", "return lost", "aliased"]
    return table(head, rows)


def examples(candidate: Json) -> Markup:
    """Return a table of an agent's aliased observations with their best actions; empty if there are none."""
    examples = (candidate.get("aliasing") or {}).get("examples") or []
    rows = [
        [
            ", ".join(f"{name} {number(value)}" for name, value in example["observation"].items()),
            count(example["states"]),
            ", ".join(f"{action} × {times}" for action, times in example["actions"].items()),
            number(example["value_lost"]),
        ]
        for example in examples
    ]
    return table(["observation", "states", "right actions", "return lost"], rows) if rows else Markup("")


def off_policy(result: Json) -> Markup:
    """Return a table of off-policy estimates of each agent's return on logged runs; ``result`` is by version."""
    rows = []
    for version, scored in result.items():
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
    head = ["agent", "runs", "logged return", "return in replay", "gain in replay", "doubly robust"]
    return table([*head, "effective runs", "agreement"], rows)


def settings(report: Json) -> Markup:
    """Return a table of the settings in an evaluation's report."""
    known = {name.replace("_", " "): value for name, value in report["settings"].items()}
    rows = [[name, number(value) if isinstance(value, int | float) else str(value)] for name, value in known.items()]
    return table(["setting", "value"], rows)


# The tables of a training's report.


AGENT, OPTIMUM = "agent", "optimum"
SHOWN = {"algorithm", "seed", "version", "promoted", "reason", "best_heuristic", "incumbent", "episodes", "sequences"}
SHOWN |= {"gap_to_optimum", "optimum_reason", "judge"}


class ScoreTable(NamedTuple):
    """Score by which an agent's report compares policies, with its mean and interval for every policy.

    Attributes:
        measure: label of the score.
        least: whether smaller scores are better.
        steps, learning: labels of the learning curve's axes.
        scores: ``mean``, ``low`` and ``high`` of the score by policy.
    """

    measure: str
    least: bool
    steps: str
    learning: str
    scores: Mapping[str, Json]


def score_table(report: Json) -> ScoreTable:
    """Return the score of an agent's report: slowdown or objective for schedulers, else the return."""
    rules = report.get("heuristics") or {}
    for unit, loss in _losses(report).items():
        steps, learning = "steps of the search", "Loss while learning, as a share of the base strategy's,"
        return ScoreTable(unit, True, steps, learning, {AGENT: loss, **rules})
    own = {AGENT: report.get("return"), OPTIMUM: report.get("optimum")}
    scores = {**{name: policy for name, policy in own.items() if policy}, **rules}
    return ScoreTable("return", False, "environment steps", "Return while learning", scores)


def _losses(report: Json) -> dict[str, Json]:
    """Return a scheduler's loss by label, slowdown or objective, as ``mean``, ``low`` and ``high``; {} for others."""
    terms = report.get("terms") or {}
    units = {"slowdown": "bounded slowdown", "objective": "weighted terms of the objective"}
    return {unit: terms[term] for term, unit in units.items() if isinstance(terms.get(term), dict)}


def palette(report: Json) -> Palette:
    """Return the palette of an agent's report, in which the agent has the candidates' colour."""
    roles = {AGENT: "candidate", OPTIMUM: "optimum"}
    names = dict.fromkeys([AGENT, *score_table(report).scores])
    return Palette([{"name": name, "role": roles.get(name, "heuristic")} for name in names])


def under(report: Json) -> str:
    """Return the subtitle of an agent's report: algorithm, seed, and the verdict's number of episodes or sequences."""
    judged = {noun: report[noun] for noun in ("episodes", "sequences") if noun in report}
    judged_on = [f"judged on {count(amount)} {noun}" for noun, amount in judged.items()]
    return "; ".join([f"{report.get('algorithm')}, seed {report.get('seed')}", *judged_on]) + "."


def verdict(report: Json) -> Markup:
    """Return a card with the training's verdict and its reason, after the report's lines on the present state."""
    now = [element("p", element("strong", line)) for line in report.get("now", ())]
    badge = element("span", "promoted" if report.get("promoted") else "not promoted", class_="class")
    when = element("p", "When its training ended:")
    why = element("p", str(report.get("reason", NOTHING)))
    return element("div", *now, when, element("p", badge), why, class_="card")


def agent_tables_outcomes(report: Json) -> Markup:
    """Return a table of mean outcomes per episode, in users' units, of agent and rivals; empty without outcomes."""
    rows = report.get("outcomes") or []
    if not rows:
        return Markup("")
    names = list(rows[0]["policies"])
    cells = [[row["name"], *(amount(row["policies"][name]["mean"], row["unit"]) for name in names)] for row in rows]
    return table(["mean per episode", *names], cells)


def score_rows(report: Json) -> Markup:
    """Return a table of every policy's mean score with interval, the best first."""
    result = score_table(report)
    names = sorted(result.scores, key=lambda name: float(result.scores[name]["mean"]), reverse=not result.least)
    rows = [[_heuristic_name(name, report), interval(dict(result.scores[name]))] for name in names]
    return table(["policy", f"mean {result.measure}"], rows, marked=[names.index(AGENT)] if AGENT in names else [])


def _heuristic_name(name: str, report: Json) -> str:
    best = name == report.get("best_heuristic")
    return element("span", name, " ", element("small", "best heuristic")) if best else safe(name)


def gains(report: Json) -> Markup:
    """Return a table of the agent's paired gains over rivals, and its gap to the optimum; empty if there are none."""
    gained = {"the best heuristic": report["advantage"]} if report.get("advantage") else {}
    gained |= {_incumbent(report): report["gain"]} if report.get("gain") else {}
    rows = [[f"over {who}", interval(gain, signed=True)] for who, gain in gained.items()]
    if report.get("gap_to_optimum") is not None:
        rows.append(["gap to the exact optimum", percent(report["gap_to_optimum"])])
    elif report.get("optimum_reason"):
        rows.append(["the exact optimum", str(report["optimum_reason"])])
    return table(["difference", "mean, paired"], rows) if rows else Markup("")


def _incumbent(report: Json) -> str:
    name = report["incumbent"]
    return f"{name}, which answered" if name in (report.get("heuristics") or {}) else str(name)


def terms(report: Json) -> Markup:
    """Return a table of the return's terms, mean per episode; empty where the report has none."""
    rows = [[name, number(value)] for name, value in (report.get("terms") or {}).items() if isinstance(value, float)]
    return table(["term", "mean per episode"], rows) if rows else Markup("")


def contenders(report: Json) -> Markup:
    """Return a table of a competition's trials, or else of the scores of what was compared; empty without either."""
    trials = report.get("bracket") or []
    if not trials:
        rows = [[name, number(score)] for name, score in (report.get("candidates") or {}).items()]
        return table(["candidate", "when compared"], rows) if rows else Markup("")
    head = ["algorithm", "seed", "share of the budget", "steps", "score", "ended"]
    chosen = [position for position, trial in enumerate(trials) if trial["chosen"]]
    return table(head, [_trial(trial) for trial in trials], marked=chosen)


def _trial(trial: Json) -> list[str]:
    ended = trial["ended"] or ("chosen" if trial["chosen"] else "completed")
    seed = NOTHING if trial["seed"] is None else str(trial["seed"])
    return [trial["algorithm"], seed, percent(trial["share"]), count(trial["steps"]), number(trial["score"]), ended]


def rest(report: Json) -> Markup:
    """Return a table of all numbers and texts of an agent's report that no other table shows; empty without any."""
    single = {
        name: value for name, value in report.items() if name not in SHOWN and isinstance(value, int | float | str)
    }
    rows = [[name.replace("_", " "), _single(value)] for name, value in single.items()]
    return table(["what", "value"], rows) if rows else Markup("")


def _single(value: float | str) -> str:
    if isinstance(value, str):
        return value
    return count(value) if isinstance(value, int) else number(value)


# Page of a forecast: recent counts of each series, and the expected ones with their band.
#
# ``python -m workers.evaluation.report.tables FILE`` renders a forecast given on standard input as the API's JSON;
# ``steward forecast --plot`` runs it.


HEIGHT = 160
DONE, REFUSED = 0, 1


def forecast_charts(answer: Json) -> list[tuple[str, str, Json]]:
    """Return heading, caption and Vega-Lite chart for every series of a forecast."""
    names = dict.fromkeys(row["series"] for row in answer["rows"])
    band = f"shaded: {text_percent(answer['level'], 0)} intervals; times are UTC"
    return [(name, f"{name}: what came, and what is expected; {band}", _chart(answer, name)) for name in names]


def _chart(answer: Json, series: str) -> Json:
    came = [row for row in answer["recent"] if row["series"] == series]
    rows = [row for row in answer["rows"] if row["series"] == series]
    at = {"field": "time", "type": "temporal", "title": "UTC", "axis": {"grid": False}, "scale": {"type": "utc"}}
    return layers(
        layer("line", "measured", came, {"x": at, "y": quantity("count", "count")}),
        layer("area", "awaited", rows, {"x": at, "y": quantity("low", "count"), "y2": {"field": "high"}}),
        layer("line", "decided", rows, {"x": at, "y": quantity("mean", "count")}, point=True),
        width=WIDTH,
        height=HEIGHT,
    )


def page(answer: Json) -> str:
    """Return the HTML document of a forecast: a chart for each series, and a table of all rows. Raises ValueError for
    data of which no valid chart can be made."""
    parts = [section(name, figure(chart, caption)) for name, caption, chart in forecast_charts(answer)]
    head = ["series", "from", "horizon (s)", "mean", "median", "low", "high", "by"]
    rows = [
        [row["series"], row["time"], *(number(row[name]) for name in ("horizon_seconds", *head[3:-1])), row["family"]]
        for row in answer["rows"]
    ]
    return document(
        title(answer), join_parts([element("h1", title(answer)), *parts, section("Rows", table(head, rows))])
    )


def title(answer: Json) -> str:
    """Return the heading of a forecast, which names its workload and model."""
    return f"Forecast of {answer['workload']} by model {answer['model']}"


def main(arguments: Sequence[str]) -> int:
    """Render the forecast (JSON on standard input) to the file in ``arguments``; return 0, or 1 if not written."""
    answer, (file,) = json.load(sys.stdin), [name for name in arguments if name != "--"]
    try:
        plots.write(Path(file), lambda: page(answer), lambda: plots.stack_plots(title(answer), forecast_charts(answer)))
    except (OSError, ValueError) as error:
        print(f"{file}: {error}", file=sys.stderr)
        return REFUSED
    return DONE


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
