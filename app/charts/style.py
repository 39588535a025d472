"""How charts look: roles of marks, and their colours on light and dark ground."""

from __future__ import annotations

from typing import Any

LIGHT_COLOURS = ("#0b7285", "#e8590c", "#6741d9", "#2b8a3e", "#c2255c", "#1864ab", "#a61e4d", "#5c940d")
DARK_COLOURS = ("#3bc9db", "#ffa94d", "#b197fc", "#69db7c", "#faa2c1", "#74c0fc", "#e599f7", "#c0eb75")
ROLES_LIGHT = ("#868e96", "#c92a2a", "#ffffff", "#e9ecef")
ROLES_DARK = ("#868e96", "#ff8787", "#13171f", "#343a40")
"""Of what stands back, of what is not to be passed, the ground, and lines on it."""
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', 'Noto Sans', 'Liberation Sans', sans-serif"


def config(*, dark: bool = False) -> dict[str, Any]:
    """The configuration of Vega-Lite for one theme."""
    colours = DARK_COLOURS if dark else LIGHT_COLOURS
    text, quiet, line = ("#ced4da", "#adb5bd", "#343a40") if dark else ("#343a40", "#495057", "#e9ecef")
    named = {"labelColor": quiet, "titleColor": quiet, "labelFont": FONT, "titleFont": FONT, "labelLimit": 260}
    return {
        "background": None,
        "font": FONT,
        "view": {"stroke": None},
        "axis": {**named, "titleFontWeight": "normal", "gridColor": line, "domainColor": line, "tickColor": line},
        "legend": {**named, "titleFontWeight": "normal", "symbolStrokeWidth": 2},
        "title": {"anchor": "start", "fontSize": 13, "font": FONT, "color": text},
        "range": {"category": list(colours), "ramp": {"scheme": "blues"}},
        "style": roles(dark=dark),
    }


def roles(*, dark: bool) -> dict[str, dict[str, Any]]:
    """How marks look, by what they are in a chart."""
    own, other, _, good, *_ = DARK_COLOURS if dark else LIGHT_COLOURS
    quiet, alarm, paper, line = ROLES_DARK if dark else ROLES_LIGHT
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
        "other": {"color": quiet, "fill": quiet},
        "interval": {"color": quiet, "stroke": quiet, "strokeWidth": 1.5},
        "stress": {"color": "#fab005", "fill": "#fab005", "opacity": 0.15, "strokeOpacity": 0},
        "ground": {"color": line, "fill": line, "opacity": 0.6},
        "cell": {},
        "note": {"color": quiet, "fill": quiet, "fontSize": 10},
    }
