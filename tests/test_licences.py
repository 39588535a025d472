"""The check of licences refuses what may not be used, and what states nothing."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from importlib.metadata import Distribution, distributions
from pathlib import Path

import pytest

from tests.licences import LOCK, REVIEWED, ROOT, Package, allowed, installed, locked, refused


def planted(folder: Path, name: str, *lines: str) -> Distribution:
    """A distribution whose metadata has these lines."""
    place = folder / f"{name.replace('-', '_')}-1.0.dist-info"
    place.mkdir()
    (place / "METADATA").write_text("\n".join(["Metadata-Version: 2.4", f"Name: {name}", "Version: 1.0", *lines, ""]))
    return Distribution.at(place)


@pytest.mark.parametrize(
    ("lines", "licence", "fine"),
    [
        (["License-Expression: MIT"], "MIT", True),
        (["License-Expression: GPL-3.0-only"], "GPL-3.0-only", False),
        (["License-Expression: MIT", "Classifier: License :: Free for non-commercial use"], "MIT", True),
        (["License-Expression: MIT OR GPL-2.0-only"], "MIT OR GPL-2.0-only", True),
        (["License-Expression: MIT AND GPL-2.0-only"], "MIT AND GPL-2.0-only", False),
        (["Classifier: License :: OSI Approved :: BSD License"], "BSD", True),
        (["Classifier: License :: Free for non-commercial use"], "Free for non-commercial use", False),
        (
            ["Classifier: License :: OSI Approved :: MIT License", "Classifier: License :: Other/Proprietary License"],
            "MIT AND Other/Proprietary License",
            False,
        ),
        (["Classifier: License :: OSI Approved", "License: Apache 2.0"], "Apache-2.0", True),
        (["License: Mine, ask me"], "Mine, ask me", False),
        (["License: UNKNOWN"], None, False),
        ([], None, False),
    ],
)
def test_a_package_is_judged_by_what_it_states(
    tmp_path: Path, lines: list[str], licence: str | None, *, fine: bool
) -> None:
    there = planted(tmp_path, "There-Is", "License-Expression: MIT")
    results = [*installed([there, planted(tmp_path, "other", *lines)])]
    assert results == [Package("there-is", "MIT"), Package("other", licence)]
    assert [line.partition(" ")[0] for line in refused(results)] == ([] if fine else ["other"])


@pytest.mark.parametrize(
    ("expression", "fine"),
    [
        ("(MIT OR GPL-3.0-only) AND BSD-3-Clause", True),
        ("(MIT AND GPL-3.0-only) OR AGPL-3.0-only", False),
        ("GPL-3.0-only OR (Apache-2.0 WITH LLVM-exception AND ISC)", True),
        ("GPL-3.0-only WITH GCC-exception-3.1", False),
        ("MIT OR GPL-3.0-only AND GPL-2.0-only", True),
    ],
)
def test_expressions_are_read_as_spdx_defines_them(expression: str, *, fine: bool) -> None:
    assert allowed(expression) == fine


def test_a_review_holds_for_one_package_and_for_what_it_stated_then() -> None:
    assert refused([Package("psycopg", "LGPL-3.0-only")]) == []
    (other,) = refused([Package("elsewhere", "LGPL-3.0-only")])
    assert other.startswith("elsewhere is under 'LGPL-3.0-only', which is not allowed; ")
    (changed,) = refused([Package("psycopg", "GPL-3.0-only")])
    assert "(it was reviewed when it stated 'LGPL-3.0-only')" in changed


def test_all_that_is_installed_may_be_used() -> None:
    packages = [*installed(distributions())]
    assert refused(packages) == []
    assert {"numpy", "steward-allocation", "steward-client", "torch"} <= {package.name for package in packages}
    assert not any("saga" in package.name for package in packages)
    assert all(review.why for review in REVIEWED.values())


def test_packages_of_the_typescript_client_may_be_used(tmp_path: Path) -> None:
    packages = [*locked(LOCK)]
    assert refused(packages) == []
    assert "npm:openapi-fetch" in {package.name for package in packages}
    lock = json.loads(LOCK.read_text())
    lock["packages"]["node_modules/a/node_modules/@other/kind"] = {"license": "SSPL-1.0"}
    lock["packages"]["node_modules/b"] = {}
    (tmp_path / "lock.json").write_text(json.dumps(lock))
    assert [line.partition(" ")[0] for line in refused(locked(tmp_path / "lock.json"))] == ["npm:@other/kind", "npm:b"]


@pytest.mark.parametrize("package", [".", "clients/python"])
def test_packages_contain_their_licence(package: str) -> None:
    project = tomllib.loads((ROOT / package / "pyproject.toml").read_text())["project"]
    assert project["license"] == "Apache-2.0"
    assert {"LICENSE", "NOTICE"} <= {*project["license-files"]}
    texts = [(ROOT / package / name).read_text() for name in project["license-files"]]
    assert texts[0] == (ROOT / "LICENSE").read_text()
    assert all("Copyright" in text for text in texts)


def test_the_typescript_client_contains_its_licence() -> None:
    package = json.loads((LOCK.parent / "package.json").read_text())
    assert (package["license"], "LICENSE" in package["files"]) == ("Apache-2.0", True)
    assert (LOCK.parent / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()


OURS = {"actions.js", "dashboard.js", "dashboard.css", "docs.css", "site.css"}


def test_the_notice_names_every_file_of_others() -> None:
    places = [("app", "*.js"), ("app", "*.css"), ("docs", "*.js"), ("docs", "*.css"), ("clients/python", "*.proto")]
    others = {path.name for folder, kind in places for path in (ROOT / folder).rglob(kind)} - OURS
    assert {"htmx.min.js", "vega.js", "pico.min.css", "iframe-worker.js", "externalscaler.proto"} <= others
    notice = (ROOT / "NOTICE").read_text()
    assert unnamed(others, notice) == set()
    for name in others:
        assert unnamed(others, re.sub(rf"\b{re.escape(name)}", "", notice)) == {name}


def unnamed(files: set[str], notice: str) -> set[str]:
    """Those that the notice does not name as a whole word."""
    return files - set(re.findall(r"[\w.-]+\w", notice))


def test_the_command_fails_for_a_package_that_was_planted(tmp_path: Path) -> None:
    for name, status in (("fine", 0), ("bad", 1)):
        planted(tmp_path, name, f"License-Expression: {'MIT' if name == 'fine' else 'GPL-3.0-only'}")
        command = [sys.executable, "-c", f"import sys; sys.path.append({str(tmp_path)!r})\nimport runpy\n"]
        command[-1] += "runpy.run_module('tests.licences', run_name='__main__')"
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode == status, done.stdout + done.stderr
        assert ("bad is under 'GPL-3.0-only', which is not allowed; replace it" in done.stdout) == (status == 1)
