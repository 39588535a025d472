"""The table of nouns: what follows from it, and that a noun is registered nowhere else."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from typer.main import get_command

from app.cli.failures import LISTS
from app.cli.main import cli
from app.cli.operations import operations
from app.http.dependencies import NounRouter
from app.keys.access import TABLE, need
from app.main import ENDPOINTS
from app.nouns import NOUNS, OPERATIONS

ROOT = Path(__file__).parents[2]
APP = ROOT / "app"
PAGES = {"dashboard"}
"""Packages with routes that are no nouns."""


def test_every_package_with_routes_is_a_noun_or_has_pages() -> None:
    assert {path.parent.name for path in APP.glob("*/endpoints.py")} - PAGES == set(NOUNS)
    assert [module.__name__ for module in ENDPOINTS] == [f"app.{package}.endpoints" for package in NOUNS]


@pytest.mark.parametrize("module", ENDPOINTS, ids=lambda module: module.__name__)
def test_a_noun_has_its_own_router_and_a_scope_for_each_route_and_no_more(module: object) -> None:
    router: NounRouter = module.router  # type: ignore[attr-defined]
    assert f"app.{router.noun.package}.endpoints" == module.__name__  # type: ignore[attr-defined]
    hot = {f"{method} {one.path}" for one in getattr(module, "hot_routes", ()) for method in one.methods}
    ordinary = {f"{method} {route.path}" for route in router.routes for method in route.methods}  # type: ignore[attr-defined]
    whole = {
        f"{method} {router.noun.path}{below}" for method, _, below in (one.partition(" ") for one in router.noun.access)
    }
    assert {one for one in hot | ordinary if not one.startswith("HEAD ")} == whole
    assert whole <= set(OPERATIONS)


def test_a_noun_without_an_entry_fails_at_import() -> None:
    with pytest.raises(KeyError, match="bookings"):
        NounRouter("bookings")


def test_paths_and_commands_are_of_one_noun_each() -> None:
    assert len({noun.path for noun in NOUNS.values()}) == len(NOUNS)
    commands = [noun.command for noun in NOUNS.values() if noun.command]
    assert len(set(commands)) == len(commands) == 11
    assert sum(len(noun.access) for noun in NOUNS.values()) == len(OPERATIONS)  # none twice


def test_every_operation_of_the_table_needs_what_it_says() -> None:
    assert set(OPERATIONS) < set(TABLE)
    assert need("GET", "/runs/{run}").words == ["read", "report"]
    assert need("GET", "/runs/{run}").run
    assert need("PUT", "/workloads/{workload}/retention").words == ["admin"]
    assert need("PUT", "/workloads/{workload}/drift").words == ["train"]
    assert need("GET", "/no/such/path").words == ["admin"]


def test_each_group_of_commands_is_added_and_can_list() -> None:
    groups = get_command(cli).commands  # type: ignore[attr-defined]
    for noun in NOUNS.values():
        if noun.command:
            assert noun.command in groups
            assert f"{noun.command} {'list' if noun.item else 'show'}" in operations()


def test_errors_that_name_an_item_lead_to_the_command_that_lists_them() -> None:
    assert LISTS == {
        "workload": "workload list",
        "execution": "samples list WORKLOAD",
        "model": "model list WORKLOAD",
        "agent": "agent list WORKLOAD",
        "run": "run list",
        "job": "job list",
        "evaluation": "evaluate list",
        "series": "series list WORKLOAD",
    }


def _registrations(package: str) -> Iterator[str]:
    """Modules of ``app`` outside a noun's package that import its routes, or have its path or scopes by hand."""
    path = NOUNS[package].path
    by_hand = {f"app.{package}.endpoints", path, *(f"{one.partition(' ')[0]} {path}" for one in OPERATIONS)}
    for source in sorted(APP.rglob("*.py")):
        name = source.relative_to(APP).as_posix()
        if name.startswith((f"{package}/", "kinds/", "dashboard/", "cli/")):  # the last two are callers of the API
            continue
        for node in ast.walk(ast.parse(source.read_text())):
            imported = isinstance(node, ast.ImportFrom) and f"{node.module}.{node.names[0].name}" in by_hand
            if imported or (isinstance(node, ast.Constant) and node.value in by_hand):
                yield name


@pytest.mark.parametrize("package", NOUNS)
def test_a_noun_is_registered_once(package: str) -> None:
    assert list(_registrations(package)) == ["nouns.py"]


OWN = ("its routes", "its operations", "its tests")
"""Places of a noun in its own folders."""
MOST_PLACES = 8
OTHER_MEANINGS = {
    "caps": {"app/runs/endpoints.py", "app/runs/reporter.py", "app/runs/service.py"},
    "agents": {"app/evaluations/schemas.py", "app/evaluations/service.py", "app/retention/holds.py"},
    "jobs": {"app/errors.py"},
    "runs": {"app/agents/evidence.py"},
}
"""Files in which the word is a field of a request or response, or a quota, and not the noun."""


def _places(package: str) -> set[str]:
    """Files outside a noun's folders that have it as a word of their own: its package, its tag or one of its paths."""
    noun = NOUNS[package]
    words = {package, noun.tag, noun.path, *(operation for operation in OPERATIONS if operation.endswith(noun.path))}
    sources = [*APP.rglob("*.py"), *(ROOT / "migrations").rglob("*.py"), ROOT / "tests/app/keys/test_every_path.py"]
    result = set()
    for source in sources:
        name = source.relative_to(ROOT).as_posix()
        if name.startswith((f"app/{package}/", "app/kinds/", "app/dashboard/", "app/cli/", "app/charts/")):
            continue
        for node in ast.walk(ast.parse(source.read_text())):
            if isinstance(node, ast.Constant) and node.value in words:
                result.add(name)
    return result | ({"pyproject.toml"} if f"app.{package}" in (ROOT / "pyproject.toml").read_text() else set())


@pytest.mark.parametrize("package", [package for package, noun in NOUNS.items() if noun.command])
def test_a_noun_stands_in_few_places(package: str) -> None:
    places = [*OWN, *sorted(_places(package) - OTHER_MEANINGS.get(package, set()))]
    print(f"{package}: {', '.join(places)}")
    assert len(places) <= MOST_PLACES


def test_the_application_has_a_route_for_every_operation(client: TestClient) -> None:
    app = client.app
    assert isinstance(app, FastAPI)
    schema = app.openapi()
    assert {f"{method.upper()} {path}" for path, item in schema["paths"].items() for method in item} >= set(OPERATIONS)
