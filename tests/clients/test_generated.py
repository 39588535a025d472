"""The committed schema is the application's, and the committed client is the schema's: ``make openapi`` renews both."""

import importlib.util
import json
import re
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
STALE = "is stale: run `make openapi` and commit what it changes"


@pytest.fixture(scope="module")
def regenerate() -> ModuleType:
    spec = importlib.util.spec_from_file_location("regenerate", ROOT / "clients/python/regenerate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def changed(committed: Mapping[str, object], current: Mapping[str, object]) -> list[str]:
    """Names that were added, removed or changed."""
    return sorted(name for name in {*committed, *current} if committed.get(name) != current.get(name))


def sources(folder: Path) -> dict[str, str]:
    return {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*.py")}


def test_the_schema_has_not_changed_unseen(regenerate: ModuleType) -> None:
    committed, current = json.loads((ROOT / "openapi.json").read_text()), json.loads(regenerate.snapshot())
    assert changed(committed["paths"], current["paths"]) == [], f"openapi.json {STALE}"
    assert changed(committed["components"]["schemas"], current["components"]["schemas"]) == [], f"openapi.json {STALE}"
    assert committed == current, f"openapi.json {STALE}"


def test_the_client_is_not_stale(regenerate: ModuleType, tmp_path: Path) -> None:
    warned = regenerate.generate(ROOT / "openapi.json", tmp_path / "generated")
    assert "WARNING" not in warned
    assert changed(sources(regenerate.GENERATED), sources(tmp_path / "generated")) == [], f"the client {STALE}"


def test_the_client_declares_what_it_imports() -> None:
    declared = tomllib.loads((ROOT / "clients/python/pyproject.toml").read_text())["project"]["dependencies"]
    assert {re.split(r"[<>=]", one)[0] for one in declared} == {"attrs", "httpx", "typing-extensions"}
    core = "".join(sources(ROOT / "clients/python/steward_client/generated").values())
    packages = {match[1] for match in re.finditer(r"^ *(?:from|import) (\w+)", core, re.MULTILINE)}
    assert packages - sys.stdlib_module_names == {"attrs", "httpx"}


def test_the_schema_tells_its_version(regenerate: ModuleType) -> None:
    schema = json.loads(regenerate.snapshot())
    assert schema["openapi"].startswith("3.1")
    assert schema["info"]["title"]
