"""A disk of some megabytes that runs full while reports come, and has room again: nothing acknowledged is lost."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from tests.conftest import StartSteward
from tests.faults.reporting import Reporting
from tests.servers import wait_until

SMALL, LARGE = "size=12m", "size=64m"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system in memory; only root may have one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    able = os.geteuid() == 0 and shutil.which("mount") is not None
    command = ["mount", "-t", "tmpfs", "-o", SMALL, "tmpfs", str(folder)]
    if not able or subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("a file system of its own can't be mounted here")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.fixture
def grow(disk: Path) -> Callable[[], object]:
    """Gives it more room."""
    return lambda: subprocess.run(["mount", "-o", f"remount,{LARGE}", str(disk)], check=True)


@pytest.mark.slow
def test_a_full_disk_is_said_and_forgotten_when_there_is_room(
    disk: Path, grow: Callable[[], object], steward_factory: StartSteward, tmp_path: Path
) -> None:
    url = f"sqlite:///{disk / 'steward.db'}"
    api = steward_factory(tmp_path / "data", "--workers", "0", wait="alive", database_url=url)
    with Reporting(api.url) as reporting:
        (disk / "ballast").write_bytes(b"\0" * (shutil.disk_usage(disk).free - (200 << 10)))
        wait_until(lambda: 503 in reporting.statuses, 150, "the disk to run full")
        refused = httpx.post(f"{api.url}/runs", json={"workload": "planted"}, timeout=60)
        assert (refused.status_code, refused.json()["type"]) == (503, "/problems/disk-full")
        before = reporting.counts
        answer = httpx.get(f"{api.url}/runs/{next(iter(before))}", timeout=60)
        assert answer.status_code == 200  # what is stored can be read
        grow()
        reporting.wait_for_more(5)
    reporting.check()
    assert reporting.statuses <= {200, 201, 503}
