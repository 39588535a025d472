"""What MkDocs is told beside its settings: pages written from code, and links to files of the repository."""

from __future__ import annotations

import json
from importlib.resources import files as resources
from pathlib import Path

import cli_reference
import fastapi_offline
from http_reference import page as schema_page
from http_reference import reference
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from repository_links import HOME, ROOT, beyond, moved, of_site, source

WIDGETS = ("swagger-ui.css", "swagger-ui-bundle.js")
ALWAYS = [HOME, ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md"]


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Have the navigation list the pages of the command line, one for each group of commands."""
    (listed,) = (entry["Reference"] for entry in config.nav or [] if "Reference" in entry)
    (place,) = (entry for entry in listed if isinstance(entry, dict) and "Command line" in entry)
    named = [{f"steward {name}": cli_reference.page(name)} for name in cli_reference.groups()]
    place["Command line"] = [{"All commands": cli_reference.MAIN}, *named]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what is written from code, and what pages link to outside their folder."""
    schema = json.loads((ROOT / "openapi.json").read_text())
    for name, text in {
        "reference/http.md": reference(schema),
        "reference/schema.html": schema_page(schema),
        **cli_reference.pages(),
    }.items():
        files.append(File.generated(config, name, content=text))
    for name in WIDGETS:
        widget = (resources(fastapi_offline) / "static" / name).read_bytes()
        files.append(File.generated(config, f"reference/{name}", content=widget))
    for path in _outside(files):
        files.append(File.generated(config, of_site(path), content=path.read_bytes()))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Have links to files of the repository lead to their copies; the first page has no pages beside it to list."""
    if page.file.src_uri == "index.md":
        page.meta["hide"] = ["navigation"]
    return moved(markdown, source(page.file.src_uri))


def _outside(files: Files) -> list[Path]:
    pages = [Path(file.abs_src_path) for file in files.documentation_pages() if file.abs_src_path]
    try:
        return list(dict.fromkeys([*beyond([*pages, *ALWAYS]), *ALWAYS, ROOT / "openapi.json"]))
    except ValueError as error:
        raise PluginError(str(error)) from error
