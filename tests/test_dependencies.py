"""What is installed follows who imports it: the core is what serves, the extra `worker` what learns."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from app.installed import DISTRIBUTION, EXTRAS, missing

ROOT = Path(__file__).parent.parent
FOUND_BY_OTHERS = {"httptools", "uvloop", "psycopg"}  # uvicorn and SQLAlchemy look for them
MODULES = {"pyjwt": "jwt", "scikit-learn": "sklearn", "vl-convert-python": "vl_convert"}
OURS = {"app", "workers", "migrations", "steward_demos", "_typeshed"}  # the last: types of the standard library


@cache
def project() -> dict[str, Any]:
    project: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return project


def modules(requirements: Iterable[str]) -> set[str]:
    """Top-level modules of requirements; of an extra of our own, none."""
    names = {re.split(r"[\[<>=;~! ]", requirement)[0] for requirement in requirements} - {DISTRIBUTION}
    return {MODULES.get(name, name.replace("-", "_")) for name in names}


def imported(*folders: str) -> set[str]:
    """Top-level modules of others that the files in `folders` import, at whatever depth."""
    result = {module for folder in folders for file in (ROOT / folder).rglob("*.py") for module in _imported(file)}
    return result - set(sys.stdlib_module_names) - OURS


@cache
def _imported(file: Path) -> set[str]:
    parts: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            parts |= {name.name.partition(".")[0] for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            parts.add(str(node.module).partition(".")[0])
    return parts


def test_what_serves_imports_the_core_alone() -> None:
    core = modules(project()["dependencies"])
    others = [str(path.relative_to(ROOT)) for path in (ROOT / "app").iterdir() if path.is_dir()]
    beyond = (
        imported(*others, "migrations") - core - {"starlette", "anyio", "kombu", "pydantic_core", "markupsafe"}
    )  # of FastAPI, Celery, Pydantic and Jinja
    assert beyond <= {
        "gymnasium",  # the spaces of a layout, which simulators ask for
        "cryptography",  # of PyJWT's extra `crypto`
        "opentelemetry",  # where spans are wanted; the extra `otel`
        *("jsonschema", "mcp", "mcp_types"),  # of `steward mcp`; the extra `mcp`
    }


def test_the_extras_that_users_are_told_of_are_there() -> None:
    ours = {"demo", "dev", "docs", "audit", "bench"}  # of developers, but for `demo`, which is `worker`
    assert project()["name"] == DISTRIBUTION
    assert {*EXTRAS} == {*project()["optional-dependencies"]} - ours
    assert missing("worker") == []


def test_all_that_is_installed_is_imported() -> None:
    assert modules(project()["dependencies"]) - imported("app", "migrations") <= FOUND_BY_OTHERS
    assert modules(project()["optional-dependencies"]["worker"]) <= imported("workers", "examples/demos")
