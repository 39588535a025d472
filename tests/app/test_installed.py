"""Entry points are read once, and again as soon as a package is installed or removed."""

import os
import shutil
from pathlib import Path

import pytest

from app import installed
from app.installed import DISTRIBUTION, points

ROOT = Path(__file__).parents[2]


def install(folder: Path, name: str) -> Path:
    """A package without modules that has one entry point; as an installer does, its folder is made at once."""
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[steward.tested]\n{name} = {name}:found\n")
    os.utime(folder, ns=(0, folder.stat().st_mtime_ns + 1_000_000))  # clocks of file systems are coarse
    return info


def names() -> list[str]:
    return sorted(point.name for point in points("steward.tested"))


def test_packages_are_seen_as_they_come_and_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    assert names() == []
    first = install(tmp_path, "first")
    assert names() == ["first"]
    assert points("steward.tested") is points("steward.tested")
    install(tmp_path, "second")
    assert names() == ["first", "second"]
    shutil.rmtree(first)
    os.utime(tmp_path, ns=(0, tmp_path.stat().st_mtime_ns + 1_000_000))
    assert names() == ["second"]
    assert [point.name for point in points("steward.other")] == []


@pytest.mark.parametrize(
    ("origin", "command"),
    [
        ('{"url": "file:///x", "dir_info": {"editable": true}}', "in the checkout, pip install -e '.[mcp]'"),
        ('{"url": "file:///x.whl", "archive_info": {}}', 'pip install "$(echo dist/steward_allocation-*.whl)[mcp]"'),
        (None, "pip install 'steward-allocation[mcp]'"),
        ("no JSON", "pip install 'steward-allocation[mcp]'"),
    ],
)
def test_an_extra_is_installed_from_where_the_rest_came(
    origin: str | None, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = tmp_path / f"{DISTRIBUTION.replace('-', '_')}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {DISTRIBUTION}\nVersion: 1.0\n")
    if origin is not None:
        (info / "direct_url.json").write_text(origin)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert installed.command("mcp") == command
    if "echo" in command:
        assert command.replace("mcp", "worker").removeprefix("pip install ") in (ROOT / "README.md").read_text()
