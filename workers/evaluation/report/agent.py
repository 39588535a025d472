"""The report of a training, for people: the verdict in words, what it rests on, and what was learned.

``python -m workers.evaluation.report.agent FILE`` draws it from an agent as the API answers with it, read from standard
input: ``steward train`` and ``steward agent show`` run that.
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
from workers.evaluation.report.markup import Markup, document, element, joined, section
from workers.evaluation.report.page import VERDICT

Json = dict[str, Any]
Plots = Sequence[tuple[str, str, Any]]
SEQUENCE = pictures.Scheduled(
    "One sequence", "One sequence of jobs of those that it was judged on, the middle one by length and load."
)
COMPARISON, CURVE, NONE = "Beside all others", "Learning curve", Markup("")
DONE, REFUSED = 0, 1


class RenderedReport(NamedTuple):
    """A report whose plots are drawn, which takes seconds; the words around them may still change.

    Attributes:
        plots: of this training's own figures, by heading.
        shown: what its kind draws of what it made.
    """

    workload: str
    plots: dict[str, Markup]
    shown: Sequence[Markup]

    def page(self, report: Json) -> str:
        """The report as an HTML document."""
        top = title(self.workload, report)
        body = [
            element("h1", top),
            element("p", tables.under(report)),
            section("Verdict", tables.verdict(report)),
            section("What users count", tables.agent_tables_outcomes(report)),
            section(COMPARISON, tables.score_rows(report), tables.gains(report), self.plots.get(COMPARISON, NONE)),
            section("Terms of the return", tables.terms(report)),
            section("Who competed", tables.contenders(report)),
            section(CURVE, self.plots.get(CURVE, NONE)),
            *pictures.sections(report.get("pictures"), SEQUENCE, self.shown),
            section("Effort and settings", tables.rest(report)),
            section("How to read this", element("p", VERDICT)),
        ]
        return document(top, joined(body))


def rendered(workload: str, report: Json) -> RenderedReport:
    """Draw the plots of a report."""
    own = {heading: charts.figure(chart, caption) for heading, caption, chart in _own(report)}
    return RenderedReport(workload, own, pictures.figures(report.get("pictures")))


def title(workload: str, report: Json) -> str:
    """What the report is of."""
    return f"Agent {report['version']} of {workload}" if "version" in report else f"An agent of {workload}"


def save(file: Path, workload: str, report: Json) -> None:
    """Draw to a file; see ``plot.write``."""
    plots = [*_own(report), *pictures.drawn(report.get("pictures"))]

    def page() -> str:
        return rendered(workload, report).page(report)

    plot.write(file, page, lambda: plot.stacked(title(workload, report), plots))


def _own(report: Json) -> Plots:
    found, palette = tables.score_table(report), tables.palette(report)
    scores = {"policies": {name: {"return": interval} for name, interval in found.scores.items()}}
    learned = report.get("curve") or ()
    curve = [{"name": tables.AGENT, "curve": learned}] if len(learned) > 1 else []
    drawn = [
        (
            COMPARISON,
            f"Mean {found.measure} of each, with its interval",
            charts.returns(scores, palette, found.measure, least=found.least),
        ),
        (CURVE, f"{found.learning} over {found.steps}", charts.curves(curve, palette, found.steps, found.learning)),
    ]
    return [one for one in drawn if one[2] is not None]


def main(arguments: Sequence[str]) -> int:
    """Draw what standard input holds; the exit status."""
    agent, (file,) = json.load(sys.stdin), [name for name in arguments if name != "--"]
    try:
        Path(file).parent.mkdir(parents=True, exist_ok=True)
        save(Path(file), agent["workload"], {**agent["report"], "version": agent["version"], "now": _now(agent)})
    except (OSError, ValueError) as error:
        print(f"{file}: {error}", file=sys.stderr)
        return REFUSED
    return DONE


def _now(agent: Json) -> list[str]:
    """What holds of an agent at present, whatever the verdict of its training was."""
    answers = f"Answers now: {agent['instead']}" if agent.get("instead") else ""
    return [line for line in (agent.get("standing_reason"), answers) if line]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
