"""Plots on dark ground: an image knows which of both the reader wants, and changes its colours by itself."""

from __future__ import annotations

from app.charts.style import DARK_COLOURS, LIGHT_COLOURS

COLOURS = dict(zip(LIGHT_COLOURS, DARK_COLOURS, strict=True)) | {
    "white": "#13171f",
    "#000": "#ced4da",
    "black": "#ced4da",
    "#212529": "#f8f9fa",
    "#343a40": "#ced4da",
    "#495057": "#ced4da",
    "#dee2e6": "#495057",
    "#e9ecef": "#343a40",
    "#c92a2a": "#ff8787",
    "#1971c2": "#74c0fc",
    "#5f3dc4": "#b197fc",
    "#2f9e44": "#69db7c",
    "#0072b2": "#4dabf7",
    "#009e73": "#38d9a9",
}
"""By the colour on light ground; what is not named is seen on both."""


def _rules() -> str:
    found = (f'[{of}="{light}"]{{{of}:{dark}}}' for light, dark in COLOURS.items() for of in ("fill", "stroke"))
    return f"<style>@media (prefers-color-scheme: dark){{{''.join(found)}}}</style>"


RULES = _rules()


def readable(svg: str) -> str:
    """An SVG that is drawn for light ground, readable on dark ground too."""
    head, end, rest = svg.partition(">")
    return f"{head}{end}{RULES}{rest}"
