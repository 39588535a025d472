"""The page: a summary in words first, then the figures that it rests on, then how to read them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from workers.evaluation.report import charts, pictures, tables
from workers.evaluation.report.charts import Palette, figure
from workers.evaluation.report.document import document
from workers.evaluation.report.markup import Markup, element, joined, section
from workers.evaluation.report.reading import READING
from workers.evaluation.report.wording import count, listed, number

Json = dict[str, Any]
MOST_LINES = 8  # heuristics in one plot of profiles
FIXED = pictures.Scheduled("The fixed episode", "One sequence of tasks, L0, as each of these decided it.")


def page(report: Json) -> str:
    """The whole document, from the evaluation's JSON."""
    palette, candidates = Palette(report["policies"]), report["candidates"]
    names = listed(candidate["name"] for candidate in candidates)
    title = f"Evaluation of {names} on {report['workload']}"
    body = [
        element("h1", title),
        element("p", _under(report)),
        section("Summary", *_summary(report, palette)),
        section("Levels", tables.levels(report["levels"])),
        section(
            "Beside every baseline",
            *(_level(level, report.get("outcomes") or [], palette) for level in report["levels"]),
        ),
        section("Train-to-test gap", tables.gaps(candidates)),
        section("Learning curves", _drawn(charts.curves(candidates, palette), "Return of the training's episodes")),
        section("Performance profiles", *_profiles(report, palette)),
        section("Terms of the reward", *_terms(report, palette)),
        section("What the agents do", *_heat_maps(candidates)),
        *pictures.sections(report.get("pictures"), FIXED, pictures.figures(report.get("pictures"))),
        section("On runs that really happened", *_off_policy(report.get("off_policy"))),
        section("Aliasing of the observations", *_aliasing(candidates)),
        section("The tuner of static settings", *_tuner(report.get("tuner"))),
        section("Settings", tables.settings(report), *_held_out(report.get("held_out"))),
        section("How to read this", *(element("p", paragraph) for paragraph in READING)),
    ]
    return document(title, joined(body))


def _under(report: Json) -> str:
    settings = report["settings"]
    model = f", domain model {report['model']}" if report.get("model") else ""
    seconds = f"; took {report['seconds']:.0f} s" if report.get("seconds") is not None else ""
    episodes = f"{settings['seeds']} seeds × {count(settings['episodes'])} episodes a level"
    return f"Kind {report['kind']}{model}; {episodes}; {settings['confidence']:.0%} intervals{seconds}."


def _drawn(chart: Any | None, caption: str) -> Markup:
    return Markup("") if chart is None else figure(chart, caption)


def _summary(report: Json, palette: Palette) -> list[Markup]:
    candidates: Sequence[Json] = report["candidates"]
    caption = "What each agent earns over the best heuristic, by level; it advances while that is not below the margin"
    return [
        *(_card(candidate, report["policies"]) for candidate in candidates),
        tables.ladder(candidates),
        _drawn(charts.advantages(candidates, palette), caption),
    ]


def _card(candidate: Json, policies: Sequence[Json]) -> Markup:
    """Class, verdict, and at which level the way up ended and why."""
    title = next((str(p.get("title") or "") for p in policies if p["name"] == candidate["name"]), "")
    title = f"{candidate['name']} ({title})" if title not in ("", candidate["name"]) else candidate["name"]
    badge = element("span", "no class" if candidate["class"] == "none" else candidate["class"], class_="class")
    ends = [x for x in candidate["levels"] if tables.level_status(x, candidate["class"]) in ("failed", "unknown")]
    why = [element("p", element("strong", f"Stopped at {x['level']}: "), x["reason"]) for x in ends[:1]]
    reasons = [element("li", element("strong", f"{x['level']}: "), str(x["reason"])) for x in candidate["levels"]]
    steps = element("details", element("summary", "Level by level"), element("ul", *reasons))
    return element(
        "div", element("h3", badge, " ", title), element("p", candidate["verdict"]), *why, steps, class_="card"
    )


def _level(level: Json, counted: Sequence[Json], palette: Palette) -> Markup:
    if not level["available"]:
        return joined([_heading(level), element("p", f"Not played: {level['reason']}")])
    optimum = level.get("optimum") or {}
    missing = optimum.get("reason") if not (optimum.get("available", True) and optimum.get("exact", True)) else None
    plan = "; “plan” is the best that planning found" if missing and optimum.get("available") else ""
    note = element("p", f"No exact optimum: {missing}{plan}") if missing else Markup("")
    chart = _drawn(
        charts.returns(level, palette), f"Returns at {level['level']}: mean with its interval; the tick is the IQM"
    )
    told = tables.outcomes(level, counted, palette.roles) if counted else Markup("")
    return joined([_heading(level), told, tables.scores(level, palette.roles), note, chart])


def _heading(level: Json) -> Markup:
    return element("h3", level["level"] if level["level"] == level["title"] else f"{level['level']} · {level['title']}")


def _profiles(report: Json, palette: Palette) -> list[Markup]:
    caption = "{}: share of episodes whose normalised score exceeds τ"
    levels = {level["level"]: level for level in report["levels"]}
    return [
        _drawn(charts.profile(_fewer(found, levels[found["level"]], palette), palette), caption.format(found["level"]))
        for found in report.get("profiles") or ()
    ]


def _fewer(found: Json, level: Json, palette: Palette) -> Json:
    """The profiles of all that are no heuristics, and of the best that are: more lines can't be told apart."""
    names = [name for name in found["policies"] if palette.roles.get(name) == "heuristic"]
    if len(names) <= MOST_LINES:
        return found
    best = sorted(names, key=lambda name: -level["policies"][name]["return"]["mean"])
    left_out = set(best[MOST_LINES:])
    return {**found, "policies": {n: drawn for n, drawn in found["policies"].items() if n not in left_out}}


def _terms(report: Json, palette: Palette) -> list[Markup]:
    weights = report.get("term_weights") or {}
    caption = "{}: what each policy pays by term, at the workload's own weights; shorter is better"
    return [
        _drawn(charts.terms(level, report["terms"], weights, palette), caption.format(level["level"]))
        for level in report["levels"]
        if level["available"] and level["level"] != "train"
    ]


def _heat_maps(candidates: Sequence[Json]) -> list[Markup]:
    caption = "{}: mean {} by situation, at L1; blank where no episode came"
    return [
        _drawn(
            charts.heat_map(candidate["heat_map"]),
            caption.format(candidate["name"], candidate["heat_map"]["value"]["name"]),
        )
        for candidate in candidates
        if candidate.get("heat_map")
    ]


def _off_policy(found: Json | None) -> list[Markup]:
    return [tables.off_policy(found)] if found else []


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
    chosen = ", ".join(f"{name} {_value(value)}" for name, value in tuner["settings"].items())
    effort = f"{tuner['trials']} trials in {number(tuner.get('seconds'))} s"
    text = f"After {effort}: {chosen}; return {number(tuner['return'])}."
    return [element("p", text), _drawn(charts.tuning(tuner.get("history") or ()), "Best return found so far, by trial")]


def _value(value: Any) -> str:
    return number(value) if isinstance(value, int | float) else str(value)


def _held_out(held_out: Json | None) -> list[Markup]:
    if held_out is None:
        return []
    if held_out.get("reason"):
        return [element("p", f"Nothing held out: {held_out['reason']}")]
    return [element("p", str(held_out["note"]))] if held_out.get("note") else []
