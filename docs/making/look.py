"""How figures look: readable on white and on black, for they are drawn without a ground of their own."""

from __future__ import annotations

from typing import TypeVar

import altair as alt

LINE = "#0e9384"
OTHER = "#8a93a0"
TARGET = "#d9480f"
BAND = 0.25
GREY = "#7d8590"

Chart = TypeVar("Chart", bound=alt.TopLevelMixin)


def lined(chart: Chart) -> Chart:
    """A chart with labels in a grey that both grounds carry."""
    text = {"labelColor": GREY, "titleColor": GREY, "domainColor": GREY, "tickColor": GREY, "gridOpacity": 0.25}
    title = {"color": GREY, "anchor": "start", "fontSize": 13}
    legend = {"labelColor": GREY, "titleColor": GREY, "orient": "top", "labelLimit": 400}
    view = {"stroke": None}
    return chart.configure(background="transparent", axis=text, title=title, legend=legend, view=view)
