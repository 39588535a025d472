"""A page with its style, which needs nothing from elsewhere."""

from __future__ import annotations

from workers.evaluation.report.markup import Markup, element, joined

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 64rem; margin: 2rem auto; padding: 0 1rem; color: #212529;
background: #fff; } h1 { margin-bottom: .2rem; } h2 { margin-top: 2.5rem; font-size: 1.2rem; } h3 { font-size: 1rem; }
p, figcaption, small { color: #495057; } figure { margin: 1rem 0; } figure img { max-width: 100%; height: auto; }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
thead th { color: #495057; } th { text-align: left; font-weight: 600; }
th, td { padding: .25rem 1rem .25rem 0; border-bottom: 1px solid #dee2e6; vertical-align: top; }
tr.own th, tr.own td { background: #e3fafc; }
.card { border-left: 4px solid #0b7285; padding: .1rem 1rem; margin: 1rem 0; }
.class { display: inline-block; background: #0b7285; color: #fff; border-radius: 4px; padding: 0 .5rem; }
.passed { color: #2b8a3e; font-weight: 700; }
.failed { color: #c92a2a; font-weight: 700; } .unknown { color: #868e96; }
details { margin: .5rem 0; } summary { cursor: pointer; }
"""
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def document(title: str, body: Markup) -> str:
    """A page with its style and nothing from elsewhere."""
    head = joined(
        [
            element("meta", charset="utf-8"),
            element("meta", name="viewport", content="width=device-width"),
            Markup(f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'),
            element("title", title),
            element("style", Markup(STYLE)),
        ]
    )
    return f"<!doctype html>\n{element('html', element('head', head), element('body', body), lang='en')}\n"
