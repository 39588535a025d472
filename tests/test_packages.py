"""The wheels: complete, the same bytes each time, with sound metadata; and their bill of materials."""

from __future__ import annotations

import email
import json
import os
import re
import subprocess
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path, PurePosixPath
from typing import Any

import jsonschema
import pytest
from referencing import Registry
from referencing.jsonschema import DRAFT7

from app.installed import DISTRIBUTION
from tests.materials import bill
from tests.wheels import ROOT, build

HERE = {"app": "app", "workers": "workers", "migrations": "migrations", "steward_demos": "examples/demos/steward_demos"}
CLIENT = {"steward_client": "clients/python/steward_client"}
SECONDS = "1700000000"
NAMES = ("steward_allocation-", "steward_client-")


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Path]]:
    """Both wheels, dated by ``SECONDS``."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOURCE_DATE_EPOCH", SECONDS)
        yield build(tmp_path_factory.mktemp("wheels"))


@pytest.mark.slow
def test_a_second_build_of_other_days_and_habits_gives_the_same_bytes(
    wheels: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", SECONDS)
    monkeypatch.setenv("TMPDIR", str(tmp_path))  # another folder
    monkeypatch.setenv("PYTHONHASHSEED", "7")
    before = os.umask(0o077)
    try:
        again = build(tmp_path / "again")
    finally:
        os.umask(before)
    assert [path.name for path in again] == [path.name for path in wheels]
    assert [path.read_bytes() for path in again] == [path.read_bytes() for path in wheels]
    with zipfile.ZipFile(again[0]) as opened:
        assert {one.date_time[:3] for one in opened.infolist()} == {(2023, 11, 14)}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "folders", "sentinels"),
    [
        (0, HERE, {"app/openapi.json", "migrations/script.py.mako", "app/dashboard/templates/home.html"}),
        (1, CLIENT, {"steward_client/py.typed"}),
    ],
)
def test_wheels_have_every_file_of_their_packages_and_no_other(
    number: int, folders: dict[str, str], sentinels: set[str], wheels: list[Path]
) -> None:
    command = [
        "git",
        "-C",
        str(ROOT),
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
        *folders.values(),
    ]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split("\0")
    expected = {
        f"{package}/{PurePosixPath(name).relative_to(folder)}"
        for package, folder in folders.items()
        for name in filter(None, listed)
        if PurePosixPath(name).is_relative_to(folder) and (ROOT / name).is_file()
    }
    with zipfile.ZipFile(wheels[number]) as opened:
        names = {name for name in opened.namelist() if ".dist-info/" not in name}
        assert opened.testzip() is None
    assert sentinels <= names
    assert names == expected


@pytest.mark.slow
@pytest.mark.parametrize("number", [0, 1])
def test_metadata_says_what_the_package_is(number: int, wheels: list[Path]) -> None:
    with zipfile.ZipFile(wheels[number]) as opened:
        (place,) = (name for name in opened.namelist() if name.endswith(".dist-info/METADATA"))
        message = email.message_from_bytes(opened.read(place))
        folder = place.rpartition("/")[0]
        assert {f"{folder}/licenses/{name}" for name in message.get_all("License-File") or ()} <= {*opened.namelist()}
    assert wheels[number].name.startswith(NAMES[number])
    assert message["Name"] == (DISTRIBUTION, "steward-client")[number]
    assert message["License-Expression"] == "Apache-2.0"
    assert message["Requires-Python"] == ">=3.11"
    assert message["Summary"]
    assert message["Keywords"]
    assert message["Description-Content-Type"] == "text/markdown"
    assert message.get_payload()
    assert "Programming Language :: Python :: 3.11" in (message.get_all("Classifier") or ())
    assert not message.get_all("Project-URL")  # there is no public host yet


def test_documents_name_wheels_that_are_built() -> None:
    texts = [path.read_text() for path in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"))]
    assert {name for text in texts for name in re.findall(r"\bdist/([\w.]+-)", text)} == {*NAMES}


def test_a_bill_of_unknown_extras_is_refused() -> None:
    with pytest.raises(ValueError, match=r"extras archiv, workr are unknown; accepted are archive, .*, worker"):
        bill(["workr", "mcp", "archiv"], datetime.now(UTC))


def test_without_extras_neither_torch_nor_numba_is_required() -> None:
    named = {one["name"] for one in bill([], datetime.now(UTC))["components"]}
    assert {"fastapi", "numpy", "steward-client"} <= named
    assert named & {"torch", "numba", "scipy", "scikit-learn"} == set()


def test_the_bill_of_materials_is_cyclonedx_and_names_versions_and_licences() -> None:
    at = datetime(2026, 1, 2, tzinfo=UTC)
    result = bill(["worker", "archive"], at)
    folder = files("cyclonedx.schema") / "_res"
    names = ("bom-1.6", "spdx", "jsf-0.82", "cryptography-defs")
    schema, *others = (json.loads((folder / f"{name}.SNAPSHOT.schema.json").read_text()) for name in names)
    registry = Registry[Any]().with_resources([(one["$id"], DRAFT7.create_resource(one)) for one in (schema, *others)])
    checker = jsonschema.Draft7Validator(schema, registry=registry)
    assert [error.message for error in checker.iter_errors(result)] == []
    assert [*checker.iter_errors(result | {"components": [{"name": "no type"}]})]
    named = {one["name"]: one for one in result["components"]}
    assert named["torch"]["version"] == version("torch")
    assert named["torch"]["purl"] == f"pkg:pypi/torch@{version('torch').replace('+', '%2B')}"
    assert named["alembic"]["licenses"] == [{"expression": "MIT"}]
    assert {one["ref"] for one in result["dependencies"]} >= {one["bom-ref"] for one in result["components"]}
    (root,) = (one for one in result["dependencies"] if DISTRIBUTION in one["ref"])
    assert named["torch"]["bom-ref"] in root["dependsOn"]
    assert bill(["worker", "archive"], at) == result
