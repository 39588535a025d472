"""Every block of the documents is read: commands, names and schemas that it mentions are there."""

from __future__ import annotations

import ast
import csv
import importlib
import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator
from typer._click.exceptions import UsageError

from tests.documents.blocks import ALL, NOT_HERE, ROOT, Block
from tests.documents.shell import accept, commands

SCHEMA: dict[str, Any] = json.loads((ROOT / "openapi.json").read_text())
KNOWN = {"", "sh", "python", "json", "yaml", "csv", "http", "text", "toml"}


def of(language: str) -> list[Block]:
    return [block for block in ALL if block.language == language]


def each(language: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("block", of(language), ids=lambda block: block.name)


def test_every_block_is_of_a_language_that_is_tested() -> None:
    assert {block.language for block in ALL} <= KNOWN
    assert len(of("sh")) > 20


def test_every_title_is_a_files_name_or_says_why_the_block_does_not_run() -> None:
    assert {block.title for block in ALL if not block.file} <= {"", *NOT_HERE}


@each("sh")
def test_every_command_is_there(block: Block) -> None:
    for words in commands(block.text):
        accept(words)


@pytest.mark.parametrize(
    "script",
    ["steward trane x", "ls; steward train --sedes 3 w", "make tset", "python -m nobody", "curl localhost:8080/rnus"],
)
def test_a_command_that_is_not_there_is_noticed(script: str) -> None:
    with pytest.raises((UsageError, AssertionError)):
        test_every_command_is_there(Block("", 0, "sh", "", "", script))


def names(node: ast.stmt) -> set[str]:
    """What a statement of a module gives a name to."""
    if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        return {node.name}
    if isinstance(node, ast.ImportFrom):
        return {alias.asname or alias.name for alias in node.names}
    return {target.id for target in getattr(node, "targets", []) if isinstance(target, ast.Name)}


def has(module: str, name: str) -> bool:
    """Whether a module has a name; but for the light client told from its source, since what learns takes seconds."""
    spec = importlib.util.find_spec(module)
    assert spec is not None, module
    assert spec.origin is not None, module
    tree = ast.parse(Path(spec.origin).read_text())
    defined = {word for node in tree.body for word in names(node)}
    below = spec.submodule_search_locations is not None and importlib.util.find_spec(f"{module}.{name}") is not None
    exported = module.startswith("steward_client") and hasattr(importlib.import_module(module), name)
    return name in defined or below or exported


@each("python")
def test_what_is_imported_is_there(block: Block) -> None:
    results = [node for node in ast.walk(ast.parse(block.text)) if isinstance(node, ast.ImportFrom) and node.module]
    ours = [
        node for node in results if str(node.module).split(".")[0] in ("app", "benchmarks", "steward_client", "workers")
    ]
    assert [alias.name for node in ours for alias in node.names if not has(str(node.module), alias.name)] == []


@each("json")
def test_json_keeps_to_its_schema(block: Block) -> None:
    value = json.loads(block.text)
    if block.schema:
        assert block.schema in SCHEMA["components"]["schemas"]
        Draft202012Validator({"$ref": f"#/components/schemas/{block.schema}", **SCHEMA}).validate(value)


@each("yaml")
def test_yaml_can_be_read(block: Block) -> None:
    assert list(yaml.safe_load_all(block.text))


@each("csv")
def test_rows_are_as_long_as_their_header(block: Block) -> None:
    header, *rows = csv.reader(block.text.splitlines())
    assert rows
    assert {len(row) for row in rows} == {len(header)}
