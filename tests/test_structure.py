"""The house keeps its order: what is blind to kinds names none, and no two modules import one another in a circle."""

import ast
import copy
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import grimp
import pytest

from app.kinds.registry import KINDS
from workers.kinds.contract import learned_kinds

ROOT = Path(__file__).parent.parent
PACKAGES = ("app", "workers")


def sources(package: str) -> Iterator[Path]:
    """Every module of a package that is blind to kinds."""
    owned = tuple(f"{package}/kinds/{kind}/" for kind in KINDS)
    for path in sorted((ROOT / package).rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        if not name.startswith(owned):
            yield path


@cache
def parsed(path: Path) -> list[ast.AST]:
    """All nodes of a module."""
    return list(ast.walk(ast.parse(path.read_text())))


def named(path: Path) -> set[str]:
    """The kinds that a module imports, or has as a word of its own."""
    kinds, parts = set(KINDS), set[str]()
    for node in parsed(path):
        for text in _texts(node):
            parts |= {text, *re.findall(r"\b(?:app|workers)\.kinds\.(\w+)", text)} & kinds
    return parts


def _texts(node: ast.AST) -> list[str]:
    """What a node imports, dotted, or is as a constant."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        return [f"{node.module}.{alias.name}" for alias in node.names]
    return [node.value] if isinstance(node, ast.Constant) and isinstance(node.value, str) else []


@pytest.mark.parametrize("package", PACKAGES)
def test_nothing_names_a_kind_but_the_kind_itself(package: str) -> None:
    guilty = {str(path.relative_to(ROOT)): sorted(result) for path in sources(package) if (result := named(path))}
    assert guilty == {}


def test_kinds_are_imported_without_what_they_learn_with() -> None:
    heavy = ["torch", "sklearn", "numba", "optuna", "vl_convert", "sqlalchemy", "celery"]
    program = (
        "import json, sys; from workers.kinds.contract import learned_kind\n"
        f"for kind in {list(learned_kinds())!r}:\n"
        f"    learned_kind(kind); print(json.dumps([kind, [m for m in {heavy!r} if m in sys.modules]]))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    assert [json.loads(line) for line in done.stdout.splitlines()] == [[kind, []] for kind in learned_kinds()]


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    """Imports of both packages."""
    return grimp.build_graph(*PACKAGES, cache_dir=None)


def test_no_circles(graph: grimp.ImportGraph) -> None:
    circles = [sorted(component) for component in _components(graph) if len(component) > 1]
    assert circles == []


def _components(graph: grimp.ImportGraph) -> Iterator[set[str]]:
    """Modules that can reach each other, by two searches (Sharir 1981)."""
    ahead = {module: set(graph.find_modules_directly_imported_by(module)) for module in graph.modules}
    behind: dict[str, set[str]] = {module: set() for module in ahead}
    for module, others in ahead.items():
        for other in others:
            behind[other].add(module)
    order, visited = list[str](), set[str]()
    for module in sorted(ahead):
        _walk(module, ahead, visited, order)
    visited = set()
    for module in reversed(order):
        if module not in visited:
            component = list[str]()
            _walk(module, behind, visited, component)
            yield set(component)


def _walk(start: str, edges: dict[str, set[str]], parts: set[str], order: list[str]) -> None:
    """Depth first, each module after all that it leads to."""
    if start in parts:
        return
    parts.add(start)
    stack = [(start, iter(sorted(edges[start])))]
    while stack:
        module, following = stack[-1]
        fresh = next((other for other in following if other not in parts), None)
        if fresh is None:
            stack.pop()
            order.append(module)
        else:
            parts.add(fresh)
            stack.append((fresh, iter(sorted(edges[fresh]))))


BELOW_THE_SERVICE = {"app.charts", "app.installed", "app.kinds", "app.policies"}
"""Packages of ``app`` that know no noun, database or HTTP; all others are the service."""
LEARNING = [f"workers.{name}" for name in ("estimators", "evaluation", "inputs", "kinds", "learning", "plugins")]


@pytest.fixture(scope="module")
def imports(graph: grimp.ImportGraph) -> grimp.ImportGraph:
    """Imports of both packages, without what kinds' commands share with the command line."""
    graph = copy.deepcopy(graph)
    for module in [one for one in graph.modules if re.match(r"app\.kinds\.\w+\.commands\.", one)]:
        for imported in graph.find_modules_directly_imported_by(module):
            if imported.startswith("app.cli"):
                graph.remove_import(importer=module, imported=imported)
    return graph


@pytest.mark.parametrize("package", [*sorted(BELOW_THE_SERVICE), *LEARNING])
def test_kinds_policies_and_what_learns_know_no_service(package: str, imports: grimp.ImportGraph) -> None:
    sources = {package, *imports.find_descendants(package)} - {"app.kinds.registry"}
    known = {one for source in sources for one in imports.find_upstream_modules(source) if one.startswith("app.")}
    if package.startswith("app."):
        assert "app.kinds.registry" not in known  # which imports whatever is installed
    else:
        known.discard("app.processes")  # how children are started
    assert {".".join(one.split(".")[:2]) for one in known} <= BELOW_THE_SERVICE


class Size(NamedTuple):
    """Of a package: lines and files, and functions for each 1,000 lines."""

    lines: int
    files: int
    functions: float


LARGEST = {"app": Size(64_209, 325, 58.3), "workers": Size(38_453, 156, 67.5)}
"""None of these may grow but for what learning brings, at most 2,000 lines in kind ``iterative`` and 2,500 in the
others, and 1,500 for what people see; they come down to 41,000 lines in 230 files, and 27,000 in 140, with 45
functions."""
LONGEST_MODULE = 620


def size(package: str) -> Size:
    """The size of a package."""
    paths = [*(ROOT / package).rglob("*.py")]
    lines = sum(path.read_text().count("\n") for path in paths)
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    functions = sum(isinstance(node, kinds) for path in paths for node in parsed(path))
    return Size(lines, len(paths), 1_000 * functions / lines)


@pytest.mark.parametrize("package", PACKAGES)
def test_the_house_does_not_grow(package: str) -> None:
    result, most = size(package), LARGEST[package]
    print(
        f"{package}: {result.lines:,} lines in {result.files} files, {result.functions:.1f} functions per 1,000 lines"
    )
    assert all(now <= limit for now, limit in zip(result, most, strict=True)), (result, most)


@pytest.mark.parametrize("package", PACKAGES)
def test_no_module_is_too_long_to_be_read(package: str) -> None:
    lengths = {path: path.read_text().count("\n") for path in (ROOT / package).rglob("*.py")}
    assert {str(path.relative_to(ROOT)): lines for path, lines in lengths.items() if lines > LONGEST_MODULE} == {}


@pytest.mark.parametrize("package", PACKAGES)
def test_every_docstring_says_something_by_itself(package: str) -> None:
    results = []
    for path in sorted((ROOT / package).rglob("*.py")):
        for node in parsed(path):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module):
                text = ast.get_docstring(node)
                if text is not None and (text.startswith("See ") or len(text.split()) < 4):
                    results.append(f"{path.relative_to(ROOT)}: {getattr(node, 'name', 'module')}: {text}")
    assert results == []
