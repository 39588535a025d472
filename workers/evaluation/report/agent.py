"""Report of a training for people: the verdict, the figures behind it, and what the agent learned.

``python -m workers.evaluation.report.agent FILE`` renders an agent, given on standard input as the API's JSON;
``steward train`` and ``steward agent show`` run it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from workers.evaluation.report import charts, tables
from workers.evaluation.report import page as pictures
from workers.evaluation.report import plots as plot
from workers.evaluation.report.markup import Markup, contents, document, element, join_parts, section
from workers.evaluation.report.page import VERDICT

Json = dict[str, Any]
SECTIONS = (
    *("Verdict", "Impact", "Agent vs. baselines", "Terms of the return", "Candidates", "Learning curve"),
    *("Effort and settings", "How to read this"),
)
Plots = Sequence[tuple[str, str, Any]]
SEQUENCE = pictures.ScheduleSection(
    "One sequence", "One sequence of jobs of those that it was judged on, the middle one by length and load."
)
COMPARISON, CURVE, NONE = "Agent vs. baselines", "Learning curve", Markup("")
DONE, REFUSED = 0, 1


class RenderedReport(NamedTuple):
    """Rendered plots of a training's report, which take seconds to render; ``page`` adds the texts.

    Attributes:
        workload: name of the workload.
        plots: rendered plots of the training's figures, by heading.
        pictures: rendered plots of the kind's own pictures.
    """

    workload: str
    plots: dict[str, Markup]
    pictures: Sequence[Markup]

    def page(self, report: Json) -> str:
        """Return the HTML document of these plots and the texts of ``report``, an agent's report."""
        top = title(self.workload, report)
        body = [
            section("Verdict", tables.verdict(report)),
            section("Impact", tables.agent_tables_outcomes(report)),
            section(COMPARISON, tables.score_rows(report), tables.gains(report), self.plots.get(COMPARISON, NONE)),
            section("Terms of the return", tables.terms(report)),
            section("Candidates", tables.contenders(report)),
            section(CURVE, self.plots.get(CURVE, NONE)),
            *pictures.sections(report.get("pictures"), SEQUENCE, self.pictures),
            section("Effort and settings", tables.rest(report)),
            section("How to read this", element("p", VERDICT)),
        ]
        head = [element("h1", top), element("p", tables.under(report)), contents(SECTIONS, body)]
        return document(top, join_parts([*head, *body]))


def render_plots(workload: str, report: Json) -> RenderedReport:
    """Render all plots of a training's report, which takes seconds; raises ValueError for an invalid chart."""
    own = {heading: charts.figure(chart, caption) for heading, caption, chart in _own(report)}
    return RenderedReport(workload, own, pictures.figures(report.get("pictures")))


def title(workload: str, report: Json) -> str:
    """Return the title of the report: the agent's version, if the report has one, and its workload."""
    return f"Agent {report['version']} of {workload}" if "version" in report else f"An agent of {workload}"


def save(file: Path, workload: str, report: Json) -> None:
    """Write a training's report to a file, in the format of its suffix.

    Raises:
        ValueError: the suffix is none of ``.html``, ``.svg`` and ``.png``.
        OSError: the file cannot be written.
    """
    plots = [*_own(report), *pictures.charts_of_report(report.get("pictures"))]

    def page() -> str:
        return render_plots(workload, report).page(report)

    plot.write(file, page, lambda: plot.stack_plots(title(workload, report), plots))


def _own(report: Json) -> Plots:
    table, palette = tables.score_table(report), tables.palette(report)
    scores = {"policies": {name: {"return": interval} for name, interval in table.scores.items()}}
    learned = report.get("curve") or ()
    curve = [{"name": tables.AGENT, "curve": learned}] if len(learned) > 1 else []
    drawn = [
        (
            COMPARISON,
            f"Mean {table.measure} of each, with its interval",
            charts.returns(scores, palette, table.measure, least=table.least),
        ),
        (CURVE, f"{table.learning} over {table.steps}", charts.curves(curve, palette, table.steps, table.learning)),
    ]
    return [one for one in drawn if one[2] is not None]


def main(arguments: Sequence[str]) -> int:
    """Render the agent (JSON on standard input) to the file in ``arguments``; return 0, or 1 if it is not written."""
    agent, (file,) = json.load(sys.stdin), [name for name in arguments if name != "--"]
    try:
        Path(file).parent.mkdir(parents=True, exist_ok=True)
        save(Path(file), agent["workload"], {**agent["report"], "version": agent["version"], "now": _now(agent)})
    except (OSError, ValueError) as error:
        print(f"{file}: {error}", file=sys.stderr)
        return REFUSED
    return DONE


def _now(agent: Json) -> list[str]:
    """Return lines on whether the agent is in use now, whatever its training's verdict; none if nothing is known."""
    answers = f"Current policy: {agent['instead']}" if agent.get("instead") else ""
    return [line for line in (agent.get("standing_reason"), answers) if line]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
