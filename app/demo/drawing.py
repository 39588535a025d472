"""Write charts to files without a browser or network, with a package of the extra ``worker``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from app.charts import figures as style
from app.charts.figures import SCHEMA, Figure, Json

WIDTH, PANEL = 760, 170
SCALE = 1.5


def stacked(figures: Sequence[Figure], height: int = PANEL) -> Json:
    """One Vega-Lite definition of charts below one another, with their texts; ``height`` of each in pixels."""
    panels = [
        {**{name: part for name, part in one.spec.items() if name != "$schema"}}
        | {"width": WIDTH, "height": height, "title": {"text": one.title, "subtitle": one.told}}
        for one in figures
    ]
    independent = {"scale": {"color": "independent"}}
    config = {**style.config(), "background": "white"}
    return {"$schema": SCHEMA, "vconcat": panels, "resolve": independent, "config": config}


def save(figures: Sequence[Figure], png: Path) -> list[Path]:
    """Write the charts as PNG and, beside it, as a self-contained HTML file; both paths."""
    import vl_convert

    spec = stacked(figures)
    png.parent.mkdir(parents=True, exist_ok=True)
    html = png.with_suffix(".html")
    png.write_bytes(vl_convert.vegalite_to_png(spec, scale=SCALE))
    html.write_text(vl_convert.vegalite_to_html(spec, bundle=True))
    return [png, html]
