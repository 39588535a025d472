"""The documents tell what is true: settings, files, commands."""

import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import typer
from steward_client.launcher import arguments
from typer.testing import CliRunner

from app.cli.commands import Defaulting
from app.cli.main import cli
from app.kinds.inference.kind import KIND as INFERENCE
from app.kinds.iterative.spec import Spec
from tests.documents.blocks import BLOCK, blocks

ROOT = Path(__file__).parents[1]
OUTSIDE = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "clients/python/README.md"]
OUTSIDE += [str(path.relative_to(ROOT)) for path in (ROOT / "examples").rglob("*.md")]
"""Documents that are no pages of the site, of which `test_site.py` follows each link."""
DOCUMENTS = [*OUTSIDE, *(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md"))]


@pytest.fixture(scope="module")
def tables() -> ModuleType:
    spec = importlib.util.spec_from_file_location("tables", ROOT / "docs/tables.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("document", [f"docs/reference/{name}.md" for name in ("settings", "access", "spec")])
def test_tables_that_follow_from_code_are_current(tables: ModuleType, document: str) -> None:
    assert document in tables.TABLES
    text = (ROOT / document).read_text()
    assert tables.renewed(document, text) == text, f"the table of {document} is stale: run `make openapi`"


@pytest.mark.parametrize("document", OUTSIDE)
def test_every_linked_file_is_there(document: str) -> None:
    path = ROOT / document
    linked = re.findall(r"\]\((?!https?:|#)([^)#]+)", path.read_text())
    assert [name for name in linked if not (path.parent / name).exists()] == []


@pytest.mark.parametrize("document", ["README.md", "CONTRIBUTING.md"])
def test_every_make_target_named_is_there(document: str) -> None:
    named = set(re.findall(r"`?make ([a-z]+)", (ROOT / document).read_text()))
    defined = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert named
    assert named <= defined


def unknown_commands(text: str) -> list[str]:
    """Inline code of a page that names a command, or one of a group, that isn't there."""
    spans = [" ".join(span.split()) for span in re.findall(r"`([^`]+)`", BLOCK.sub("", text))]
    return [span for span in spans if span.startswith("steward ") and not is_command(span)]


def is_command(span: str) -> bool:
    at: Any = typer.main.get_command(cli)
    for word in span.split()[1:]:
        if not hasattr(at, "get_command") or not re.fullmatch(r"[a-z][a-z|-]*", word):
            break
        commands = [at.get_command(typer.Context(at), name) for name in word.split("|")]
        if None in commands:
            return isinstance(at, Defaulting)
        at = commands[0]
    return True


@pytest.mark.parametrize("document", [name for name in DOCUMENTS if name != "CHANGELOG.md"])
def test_commands_within_lines_are_there(document: str) -> None:
    """But for the changelog, which names what commands were called before."""
    text = (ROOT / document).read_text()
    assert unknown_commands(text) == []
    assert "package `steward`" not in text
    assert re.findall(r"(?<![\w-])steward\[", text) == []


def test_a_command_that_is_not_there_is_found_across_a_line_break() -> None:
    text = "`steward workload\nchange resnet18 a=1`, `steward workload update resnet18`, `steward drift show|sow`"
    assert unknown_commands(text) == ["steward workload change resnet18 a=1", "steward drift show|sow"]


def test_the_reference_of_commands_has_each_option_of_the_launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "docs/making"))
    result = importlib.import_module("cli_reference").pages()["reference/cli/run.md"]
    options = {name for action in arguments.parser("steward run")._actions for name in action.option_strings}
    assert len(options) > 20
    assert [name for name in sorted(options) if not re.search(rf"(?m)^  .*{name}\b", result)] == []


def rows(document: str) -> dict[str, str]:
    """Meaning by term of a page's tables, without a link in brackets."""
    text = re.sub(r" \(\[[^\]]+\]\([^)]+\)\)", "", (ROOT / document).read_text())
    return dict(re.findall(r"^\| \*\*(\w+)\*\*[^|]*\| ([^|]+?) \|", text, re.MULTILINE))


def test_the_glossary_has_the_nouns_of_the_concepts_in_the_same_words() -> None:
    nouns, terms = rows("docs/explanation/concepts.md"), rows("docs/reference/glossary.md")
    assert len(nouns) == 10
    assert [noun for noun, meaning in nouns.items() if not terms.get(noun, "").startswith(meaning)] == []


def test_every_command_named_is_there() -> None:
    lines = [line for name in DOCUMENTS for line in (ROOT / name).read_text().splitlines()]
    named = {word for line in lines for word in re.findall(r"(?:^|`|/bin/)steward ([a-z]+)", line)}
    output = CliRunner().invoke(cli, ["--help"]).output
    assert {"serve", "import", "simulate", "agent"} <= named
    assert [name for name in named if not re.search(rf"^\s+{name}\s", output, re.MULTILINE)] == []


def test_the_tours_workload_is_accepted() -> None:
    spec = Spec.model_validate(json.loads((ROOT / "docs/tour/workload.json").read_text()))
    assert spec.name == "resnet18"


def test_what_serving_answers_is_there() -> None:
    *_, decision = [json.loads(block.text) for block in blocks("docs/how-to/serving.md") if block.language == "json"]
    assert decision.keys() <= INFERENCE.decision.model_fields.keys()


def test_the_log_of_requests_is_told_as_the_page_says() -> None:
    folder = Path("docs/requests")
    files = [str(folder / name) for name in ("requests.csv", "batches.csv")]
    output = CliRunner().invoke(
        cli, ["import", "requests", *files, "--spec", str(folder / "pages.json"), "--check"], catch_exceptions=False
    )
    assert output.exit_code == 0, output.output
    assert f"```\n{output.stdout}```" in (ROOT / "docs/how-to/own-log.md").read_text()


def test_figures_of_what_was_measured_have_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "docs/making"))
    drawn = importlib.import_module("measured_figures").FIGURES
    for name, draw in drawn.items():
        assert (ROOT / f"docs/figures/{name}.svg").exists()
        shown = draw()
        values = [part["data"]["values"] for part in shown.get("layer", [shown])]
        assert min(map(len, values)) > 5, name
