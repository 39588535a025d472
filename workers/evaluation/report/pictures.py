"""What stands under ``pictures`` in a report: a kind's ``schedules`` (see ``schedules``), or ``plots`` (see ``plots``).

Beside ``schedules`` stand ``points``; beside ``plots`` a ``title`` and, under ``told``, what they show in words.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from workers.evaluation.report import plot, plots
from workers.evaluation.report.charts import figure
from workers.evaluation.report.markup import Markup, element, section

Json = dict[str, Any]


class Scheduled(NamedTuple):
    """The heading over schedules, and which tasks they are of."""

    heading: str
    told: str


def drawn(found: Json | None) -> list[tuple[str, str, Any]]:
    """Heading, caption and chart of all that there is."""
    given = found or {}
    if given.get("schedules"):
        return plot.drawn(given["schedules"], given["points"])
    return plots.drawn(given.get("plots") or ())


def figures(found: Json | None) -> list[Markup]:
    """The charts, drawn one after the other."""
    return [figure(chart, caption) for _, caption, chart in drawn(found)]


def sections(found: Json | None, scheduled: Scheduled, shown: Sequence[Markup]) -> list[Markup]:
    """A section around ``figures``; none where there are none."""
    given: Json = found or {}
    if not shown:
        return []
    if given.get("schedules"):
        return [section(scheduled.heading, element("p", scheduled.told), plot.summary(given["schedules"]), *shown)]
    return [section(given["title"], element("p", given["told"]), *shown)]
