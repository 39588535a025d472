"""Packages from outside, as if `pip install -e` had been run on them: for this process, and for those it starts."""

import os
import tomllib
from pathlib import Path

import pytest


def install(source: Path, site: Path, monkeypatch: pytest.MonkeyPatch, *, here: bool = True) -> None:
    """Put a project's modules and entry points on the path.

    Args:
        source: folder of the project.
        site: where its metadata goes.
        monkeypatch: of the test, at whose end all is as before.
        here: whether this process is to find it, too.
    """
    project = tomllib.loads((source / "pyproject.toml").read_text())["project"]
    name, version = project["name"], project["version"]
    metadata = site / f"{name.replace('-', '_')}-{version}.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    lines: list[str] = []
    for group, points in project["entry-points"].items():
        lines += [f"[{group}]", *(f"{point} = {value}" for point, value in points.items())]
    (metadata / "entry_points.txt").write_text("\n".join(lines) + "\n")
    if here:
        for folder in (site, source):
            monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(map(str, (site, source))))
