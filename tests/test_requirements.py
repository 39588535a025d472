"""What is imported comes with what is declared: nothing is there only because something else happened to bring it."""

import ast
import sys
import tomllib
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from app.installed import DISTRIBUTION
from tests.materials import closure

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
CLIENT = [
    Requirement(text)
    for text in tomllib.loads((ROOT / "clients/python/pyproject.toml").read_text())["project"]["dependencies"]
]
OWN = {"app", "workers", "migrations", "tests", "benchmarks", "steward_client", "steward_demos"} | {
    path.stem for path in (ROOT / "examples").glob("*/*.py")
}


def declared(extra: str) -> list[Requirement]:
    """What the service needs with an extra, those that the extra names of the service among them."""
    requirements = [
        Requirement(text) for text in [*PROJECT["dependencies"], *PROJECT["optional-dependencies"].get(extra, [])]
    ]
    nested = [name for one in requirements if one.name == DISTRIBUTION for name in one.extras]
    return requirements + [one for name in nested for one in declared(name)]


def imported(*folders: str) -> list[tuple[str, str]]:
    """Each module outside the standard library that a module of the folders imports as it is loaded, and where."""
    return [match for folder in folders for match in _imported(folder)]


distributions = cache(packages_distributions)
"""Names of distributions by module, read once from all that is installed."""


@cache
def _imported(folder: str) -> list[tuple[str, str]]:
    own = OWN | sys.stdlib_module_names
    return [
        (top, path.relative_to(ROOT).as_posix())
        for path in sorted((ROOT / folder).rglob("*.py"))
        for node in ast.parse(path.read_text()).body
        for module in _modules(node)
        if (top := module.partition(".")[0]) not in own
    ]


def _modules(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module] if isinstance(node, ast.ImportFrom) and node.module and not node.level else []


@pytest.mark.parametrize(
    ("extras", "folders"),
    [([], ["app"]), (["worker", "archive"], ["workers", "examples/demos"]), (["dev"], ["app", "workers", "tests"])],
)
def test_what_is_imported_is_declared(extras: list[str], folders: list[str]) -> None:
    there = closure([one for extra in ["", *extras] for one in declared(extra)] + CLIENT).keys()
    owners = distributions()
    missing = {
        f"{module} in {path}"
        for module, path in imported(*folders)
        if not {canonicalize_name(name) for name in owners.get(module, [])} & there
    }
    assert missing == set()
