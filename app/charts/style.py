"""How charts look: roles of marks, and their colours on light and dark ground."""

from __future__ import annotations

from typing import Any

LIGHT_COLOURS = ("#0b7285", "#e8590c", "#6741d9", "#2b8a3e", "#d6336c", "#997404", "#1c7ed6", "#495057", "#9c36b5")
DARK_COLOURS = ("#3bc9db", "#ffa94d", "#b197fc", "#69db7c", "#faa2c1", "#ffe066", "#4dabf7", "#ced4da", "#e599f7")
DIVERGING_LIGHT = ("#0b4f8a", "#74b3e0", "#eceff1", "#f0a58f", "#a11a24")
DIVERGING_DARK = ("#74c0fc", "#31699b", "#343a40", "#a04a41", "#ff8787")
"""From less to more, by way of the ground: what is far from the middle stands out on either."""
ROLES_LIGHT = ("#868e96", "#c92a2a", "#ffffff", "#e9ecef")
ROLES_DARK = ("#868e96", "#ff8787", "#13171f", "#343a40")
"""Of what stands back, of what is not to be passed, the ground, and lines on it."""
TEXT_LIGHT = ("#343a40", "#495057", "#e9ecef")
TEXT_DARK = ("#ced4da", "#adb5bd", "#343a40")
"""Of titles, of labels and notes, and of the lines behind them."""
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', 'Noto Sans', 'Liberation Sans', sans-serif"


def config(*, dark: bool = False) -> dict[str, Any]:
    """The configuration of Vega-Lite for one theme."""
    colours = DARK_COLOURS if dark else LIGHT_COLOURS
    text, quiet, line = TEXT_DARK if dark else TEXT_LIGHT
    named = {"labelColor": quiet, "titleColor": quiet, "labelFont": FONT, "titleFont": FONT, "labelLimit": 260}
    return {
        "background": None,
        "font": FONT,
        "view": {"stroke": None},
        "axis": {**named, "titleFontWeight": "normal", "gridColor": line, "domainColor": line, "tickColor": line},
        "legend": {**named, "titleFontWeight": "normal", "symbolStrokeWidth": 2},
        "title": {"anchor": "start", "fontSize": 13, "font": FONT, "color": text},
        "range": {"category": list(colours), "diverging": list(DIVERGING_DARK if dark else DIVERGING_LIGHT)},
        "style": roles(dark=dark),
    }


def roles(*, dark: bool) -> dict[str, dict[str, Any]]:
    """How marks look, by what they are in a chart."""
    own, other, _, good, *_ = DARK_COLOURS if dark else LIGHT_COLOURS
    quiet, alarm, paper, line = ROLES_DARK if dark else ROLES_LIGHT
    note = (TEXT_DARK if dark else TEXT_LIGHT)[1]
    return {
        "measured": {"color": own, "stroke": own, "strokeWidth": 2},
        "sample": {"color": own, "fill": own, "opacity": 0.45, "size": 28},
        "expected": {"color": own, "fill": own, "opacity": 0.2, "strokeOpacity": 0},
        "awaited": {"color": other, "fill": other, "opacity": 0.2, "strokeOpacity": 0},
        "bands": {"opacity": 0.15, "strokeOpacity": 0},
        "fitted": {"color": own, "stroke": own, "strokeWidth": 2},
        "decided": {"color": other, "stroke": other, "strokeWidth": 2},
        "target": {"color": alarm, "stroke": alarm, "strokeDash": [6, 4], "strokeWidth": 1.5},
        "reference": {"color": good, "stroke": good, "strokeDash": [2, 3], "strokeWidth": 1.5},
        "series": {"strokeWidth": 2},
        "block": {"stroke": paper, "strokeWidth": 0.5},
        "bar": {"color": own, "fill": own},
        "other": {"color": quiet, "fill": quiet, "stroke": quiet},
        "interval": {"color": quiet, "stroke": quiet, "strokeWidth": 1.5},
        "stress": {"color": "#fab005", "fill": "#fab005", "opacity": 0.15, "strokeOpacity": 0},
        "ground": {"color": line, "fill": line, "opacity": 0.6},
        "cell": {},
        "note": {"color": note, "fill": note, "fontSize": 10},
    }
