"""The HTML page of an evaluation's report."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from app.charts import text
from workers.evaluation.report import charts, plots, tables
from workers.evaluation.report import plots as plot
from workers.evaluation.report.charts import Palette, figure
from workers.evaluation.report.markup import (
    NOTHING,
    Markup,
    contents,
    count,
    document,
    element,
    join_names,
    join_parts,
    number,
    section,
    table,
)
from workers.evaluation.statistics import MARGIN

# The ``pictures`` of a report hold a kind's ``schedules`` with ``points``, or its ``plots`` with a ``title`` and a
# description (``told``).


Json = dict[str, Any]


class ScheduleSection(NamedTuple):
    """Heading of a section of schedules, and the sentence (``caption``) that explains them."""

    heading: str
    caption: str


def charts_of_report(pictures: Json | None) -> list[tuple[str, str, Any]]:
    """Return heading, caption and Vega-Lite chart for each of a report's pictures; [] for None."""
    report = pictures or {}
    if report.get("schedules"):
        return plot.schedule_charts(report["schedules"], report["points"])
    return plots.charts_of(report.get("plots") or ())


def figures(pictures: Json | None) -> list[Markup]:
    """Return the rendered HTML figures of a report's pictures, in order; ValueError for an invalid chart."""
    return [figure(chart, caption) for _, caption, chart in charts_of_report(pictures)]


def sections(pictures: Json | None, scheduled: ScheduleSection, shown: Sequence[Markup]) -> list[Markup]:
    """Return the section (at most one) around the figures ``shown`` of a report's pictures; [] without figures."""
    report: Json = pictures or {}
    if not shown:
        return []
    if report.get("schedules"):
        return [section(scheduled.heading, element("p", scheduled.caption), plot.summary(report["schedules"]), *shown)]
    return [section(report["title"], element("p", report["told"]), *shown)]


# Explanatory paragraphs at the end of the page.


LEVELS = """\
Each level switches on one more source of randomness and keeps those before it. An agent advances while its return is,
with the stated confidence, at least that of the best heuristic on the same episodes but for a margin of practical
equivalence, a share of that heuristic's return (“equivalence margin”); its robustness level is the highest that it
reached without a break. A level that can't be judged ends the way up, and says why."""

FIGURES = """\
Intervals are Student's t of the seeds, each with its episodes (of the contenders, where several take turns); those of
shares are Jeffreys's. Differences are paired by episode. IQM is the mean of the middle half of the episodes;
probability of improvement is the share of episodes in which a policy does better than the best heuristic, ties counting
half; a performance profile is the share of episodes above each score (Agarwal
et al., 2021, Deep reinforcement learning at the edge of the statistical precipice). A normalised score is 0 for random
choices and 1 for the best heuristic."""

GAP = """\
The generalisation gap is an agent's return on training seeds minus its return at a level. The fallback rate is the
share of decisions in which the guard replaced the agent's action by a heuristic's."""

ALIASING = """\
Observations with conflicting labels are states that the agent sees as one though the right action differs; “return
lost” is what any choice of one action for each of them must cost."""

OFF_POLICY = """\
In the off-policy evaluation, replay puts an agent into each logged run, with that run's own residuals on the domain
model's predictions; the doubly robust estimate corrects the model by importance sampling (Thomas and Brunskill, 2016),
and rests on as many runs as “effective runs” says (Kish, 1965)."""

VERDICT = """\
An agent and all that it is compared with play the same episodes, which none of them learned from; intervals are of
95 %, by Student's t of what varies independently, and differences are paired by episode. Where an agent goes on
learning, each window in which the same agent is challenged asks for more confidence, so that all of its verdicts
together are right with 95 %. It is promoted where, with that confidence, it is at least
as good as the best heuristic and better than the current policy, a champion or a heuristic. Both are judged beyond a
margin of practical equivalence: a loss within it is none, and neither is a gain."""

READING = (LEVELS, FIGURES, GAP, OFF_POLICY, ALIASING)


# The page: a summary in words, the figures behind it, and how to read them.


MOST_LINES = 8  # most heuristics in one plot of profiles
FIXED = ScheduleSection("The fixed episode", "One sequence of tasks, L0, as each of these decided it.")


def page(report: Json) -> str:
    """Return the HTML document of an evaluation's JSON, which takes seconds; ValueError for an invalid chart."""
    report = _named_in_words(report)
    palette, candidates = Palette(report["policies"]), report["candidates"]
    names = join_names(candidate["name"] for candidate in candidates)
    title = f"Evaluation of {names} on {report['workload']}"
    body = [
        section("Summary", *_summary(report, palette)),
        section("Levels", tables.levels(report["levels"])),
        section(
            "Agents vs. baselines",
            *(_level(level, report.get("outcomes") or [], palette) for level in report["levels"]),
        ),
        section("Generalisation gap", tables.gaps(candidates)),
        section("Learning curves", _figure(charts.curves(candidates, palette), "Return of the training's episodes")),
        section("Performance profiles", *_profiles(report, palette)),
        section("Terms of the reward", *_terms(report, palette)),
        section("Agent behaviour", *_heat_maps(candidates)),
        *sections(report.get("pictures"), FIXED, figures(report.get("pictures"))),
        section("Off-policy evaluation", *_off_policy(report.get("off_policy"))),
        section("Aliasing of the observations", *_aliasing(candidates)),
        section("The tuner of static settings", *_tuner(report.get("tuner"))),
        section("Settings", tables.settings(report), *_held_out(report.get("held_out"))),
        section("How to read this", *(element("p", paragraph) for paragraph in READING)),
    ]
    back = f"/ui/workloads/{report['workload']}"
    top = [
        element("p", element("a", f"Workload {report['workload']}", href=back)),
        element("h1", title),
        *overview(report),
        element("p", _under(report)),
        contents(SECTIONS, body),
    ]
    return document(title, join_parts([*top, *body]))


def _named_in_words(report: Json) -> Json:
    """Return a report in which names of policies and algorithms have spaces for underscores, wherever they stand."""
    names = {str(one.get(part)) for one in report["policies"] for part in ("name", "title")}
    pattern = re.compile(rf"\b({'|'.join(re.escape(name) for name in names if '_' in name) or '$^'})\b")

    def plain(value: Any) -> Any:
        if isinstance(value, str):
            return pattern.sub(lambda match: match[0].replace("_", " "), value)
        if isinstance(value, dict):
            return {plain(key): plain(part) for key, part in value.items()}
        return [plain(part) for part in value] if isinstance(value, list) else value

    renamed: Json = plain(report)
    return renamed


SECTIONS = (
    *("Summary", "Levels", "Agents vs. baselines", "Generalisation gap", "Learning curves", "Performance profiles"),
    *("Terms of the reward", "Agent behaviour", "Off-policy evaluation", "Aliasing of the observations"),
    *("The tuner of static settings", "Settings", "How to read this"),
)
FIXED_RULES = ("static best", "hold")
"""Heuristics that never change the allocation within a run."""


def overview(report: Json) -> list[Markup]:
    """Return one sentence per candidate, and a table of mean outcomes: candidates, the built-in policy, the next best
    rule, and the best fixed allocation or settings, at the level on other seeds (else the highest that was played)."""
    played = {level["level"]: level for level in report["levels"] if level["available"] and level["best_heuristic"]}
    level = played.get("L1") or next(reversed(played.values()), None)
    sentences = [element("p", _sentence(one, level, report), class_="verdict") for one in report["candidates"]]
    counted = report.get("outcomes") or []
    if level is None:
        return sentences
    shown = _compared_policies(report, level)
    rows = [
        [
            join_parts([element("span", label), " ", element("small", name)]) if label != name else label,
            *(_mean(level["policies"][name].get("outcomes") or {}, one) for one in counted),
            number(level["policies"][name]["return"]["mean"]),
        ]
        for label, name in shown
    ]
    own = [index for index, (label, name) in enumerate(shown) if label == name]
    note = element("p", element("small", f"Means at level {level['level']} ({level['title']})."))
    shown_table = table(["policy", *(one["name"] for one in counted), "return"], rows, marked=own)
    return [*sentences, element("div", shown_table, class_="overview"), note]


def _compared_policies(report: Json, level: Json) -> list[tuple[str, str]]:
    """Return (label, name) of the overview's policies: candidates, best built-in policy, next best rule, best fixed."""
    there: Json = {name: one for name, one in level["policies"].items() if one.get("return") is not None}
    roles = {one["name"]: one["role"] for one in report["policies"]}

    def best(names: Sequence[str]) -> list[str]:
        return sorted(names, key=lambda name: -there[name]["return"]["mean"])[:1]

    built_in = str(level["best_heuristic"])
    rules = [name for name in there if roles.get(name) == "heuristic" and name != built_in]
    fixed = [name for name in there if name in FIXED_RULES or roles.get(name) == "tuner"]
    labels = [(c["name"], c["name"]) for c in report["candidates"] if c["name"] in there and not c.get("outdated")]
    labels += [("best built-in policy", built_in)]
    labels += [("next best rule", name) for name in best([name for name in rules if name not in FIXED_RULES])]
    baseline = "best fixed allocation" if any(name in roles for name in FIXED_RULES) else "best static settings"
    labels += [(baseline, name) for name in best(fixed) if name != built_in]
    return labels


def _mean(result: Json, outcome: Json) -> str:
    known = result.get(outcome["name"])
    return NOTHING if known is None else text.amount(known["mean"], outcome["unit"])


def _sentence(candidate: Json, level: Json | None, report: Json) -> str:
    name = f"{candidate['name'][:1].upper()}{candidate['name'][1:]}"
    if candidate.get("outdated"):
        return f"{name} is not assessed: {candidate['outdated']}."
    difference = None if level is None else level["policies"].get(candidate["name"], {}).get("advantage")
    if level is None or difference is None:
        return f"{name} was not evaluated: no level could be played."
    best = level["best_heuristic"]
    margin = report["settings"].get("equivalence_margin", MARGIN) * abs(level["policies"][best]["return"]["mean"])
    sentence = text.verdict(text.compared(difference, margin), f"the best built-in policy ({best.replace('_', ' ')})")
    reached = "none" if candidate["class"] == "none" else candidate["class"]
    return f"{name}: {sentence[0].lower()}{sentence[1:]} Robustness level: {reached}."


def _under(report: Json) -> str:
    settings = report["settings"]
    model = f", domain model {report['model']}" if report.get("model") else ""
    seconds = f"; took {report['seconds']:.0f} s" if report.get("seconds") is not None else ""
    episodes = f"{settings['seeds']} seeds × {count(settings['episodes'])} episodes a level"
    sure = text.percent(settings["confidence"], 0)
    return f"Kind {report['kind']}{model}; {episodes}; {sure} intervals{seconds}."


def _figure(chart: Any | None, caption: str) -> Markup:
    return Markup("") if chart is None else figure(chart, caption)


def _summary(report: Json, palette: Palette) -> list[Markup]:
    candidates: Sequence[Json] = report["candidates"]
    caption = "What each agent earns over the best heuristic, by level; it advances while that is not below the margin"
    return [
        *(_card(candidate, report["policies"]) for candidate in candidates),
        tables.ladder(candidates),
        _figure(charts.advantages(candidates, palette), caption),
    ]


def _card(candidate: Json, policies: Sequence[Json]) -> Markup:
    title = next((str(p.get("title") or "") for p in policies if p["name"] == candidate["name"]), "")
    title = f"{candidate['name']} ({title})" if title not in ("", candidate["name"]) else candidate["name"]
    badge = element("span", "no level" if candidate["class"] == "none" else candidate["class"], class_="class")
    ends = [x for x in candidate["levels"] if tables.level_status(x, candidate["class"]) in ("failed", "unknown")]
    untold = [x for x in ends[:1] if x["reason"] not in candidate["verdict"]]
    why = [element("p", element("strong", f"Stopped at {x['level']}: "), x["reason"]) for x in untold]
    reasons = [element("li", element("strong", f"{x['level']}: "), str(x["reason"])) for x in candidate["levels"]]
    steps = element("details", element("summary", "Level by level"), element("ul", *reasons))
    return element(
        "div", element("h3", badge, " ", title), element("p", candidate["verdict"]), *why, steps, class_="card"
    )


def _level(level: Json, counted: Sequence[Json], palette: Palette) -> Markup:
    if not level["available"]:
        return join_parts([_heading(level), element("p", f"Not played: {level['reason']}")])
    optimum = level.get("optimum") or {}
    missing = optimum.get("reason") if not (optimum.get("available", True) and optimum.get("exact", True)) else None
    plan = "; “plan” is the best that planning found" if missing and optimum.get("available") else ""
    note = element("p", f"No exact optimum: {missing}{plan}") if missing else Markup("")
    chart = _figure(
        charts.returns(level, palette), f"Returns at {level['level']}: mean with its interval; the tick is the IQM"
    )
    outcomes_table = tables.outcomes(level, counted, palette.roles) if counted else Markup("")
    return join_parts([_heading(level), outcomes_table, tables.scores(level, palette.roles), note, chart])


def _heading(level: Json) -> Markup:
    return element("h3", level["level"] if level["level"] == level["title"] else f"{level['level']} · {level['title']}")


def _profiles(report: Json, palette: Palette) -> list[Markup]:
    caption = "{}: share of episodes whose normalised score exceeds τ"
    levels = {level["level"]: level for level in report["levels"]}
    return [
        _figure(charts.profile(_fewer(one, levels[one["level"]], palette), palette), caption.format(one["level"]))
        for one in report.get("profiles") or ()
    ]


def _fewer(fewer: Json, level: Json, palette: Palette) -> Json:
    """Return the profile ``fewer`` with at most 8 heuristics (`MOST_LINES`), those of highest return at ``level``."""
    names = [name for name in fewer["policies"] if palette.roles.get(name) == "heuristic"]
    if len(names) <= MOST_LINES:
        return fewer
    best = sorted(names, key=lambda name: -level["policies"][name]["return"]["mean"])
    left_out = set(best[MOST_LINES:])
    return {**fewer, "policies": {n: drawn for n, drawn in fewer["policies"].items() if n not in left_out}}


def _terms(report: Json, palette: Palette) -> list[Markup]:
    weights = report.get("term_weights") or {}
    caption = "{}: what each policy pays by term, at the workload's own weights; shorter is better"
    return [
        _figure(charts.terms(level, report["terms"], weights, palette), caption.format(level["level"]))
        for level in report["levels"]
        if level["available"] and level["level"] != "train"
    ]


def _heat_maps(candidates: Sequence[Json]) -> list[Markup]:
    caption = "{}: mean {} by situation, at L1; blank where no episode came"
    return [
        _figure(
            charts.heat_map(candidate["heat_map"]),
            caption.format(candidate["name"], candidate["heat_map"]["value"]["name"]),
        )
        for candidate in candidates
        if candidate.get("heat_map")
    ]


def _off_policy(report: Json | None) -> list[Markup]:
    return [tables.off_policy(report)] if report else []


def _aliasing(candidates: Sequence[Json]) -> list[Markup]:
    shown = [tables.aliasing(candidates)]
    for candidate in candidates:
        rows = tables.examples(candidate)
        if rows:
            shown.append(element("details", element("summary", f"Examples of {candidate['name']}"), rows))
    return shown


def _tuner(tuner: Json | None) -> list[Markup]:
    if tuner is None:
        return []
    if tuner.get("settings") is None:
        return [element("p", f"Not tuned: {tuner.get('reason')}")]
    chosen = ", ".join(
        f"{name} {(number(value) if isinstance(value, int | float) else str(value))}"
        for name, value in tuner["settings"].items()
    )
    effort = f"{tuner['trials']} trials in {number(tuner.get('seconds'))} s"
    text = f"After {effort}: {chosen}; return {number(tuner['return'])}."
    return [
        element("p", text),
        _figure(charts.tuning(tuner.get("history") or ()), "Best return found so far, by trial"),
    ]


def _held_out(held_out: Json | None) -> list[Markup]:
    if held_out is None:
        return []
    if held_out.get("reason"):
        return [element("p", f"Nothing held out: {held_out['reason']}")]
    return [element("p", str(held_out["note"]))] if held_out.get("note") else []
