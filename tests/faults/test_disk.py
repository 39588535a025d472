"""A disk of some megabytes that runs full while reports come, and has room again: nothing acknowledged is lost."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from tests.conftest import StartSteward
from tests.faults.reporting import Reporting, report
from tests.servers import postgres_server, wait_until

SMALL, LARGE = "size=12m", "size=64m"


@pytest.fixture
def disk() -> Iterator[Path]:
    """A file system in memory, which other users see; only root may have one."""
    folder = Path(tempfile.mkdtemp(prefix="steward-disk-"))
    able = os.geteuid() == 0 and shutil.which("mount") is not None
    command = ["mount", "-t", "tmpfs", "-o", SMALL, "tmpfs", str(folder)]
    if not able or subprocess.run(command, capture_output=True, check=False).returncode != 0:
        folder.rmdir()
        pytest.skip("a file system of its own can't be mounted here")
    folder.chmod(0o755)
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)
    folder.rmdir()


@pytest.fixture
def grow(disk: Path) -> Callable[[], object]:
    """Gives it more room."""
    return lambda: subprocess.run(["mount", "-o", f"remount,{LARGE}", str(disk)], check=True)


def fill(disk: Path) -> None:
    """Leave little room."""
    (disk / "ballast").write_bytes(b"\0" * (shutil.disk_usage(disk).free - (200 << 10)))


def refused(url: str) -> bool:
    """Whether a new run, or its report, finds no room, and is told so: pages that are there have some left."""
    answer = httpx.post(f"{url}/runs", json={"workload": "planted"}, timeout=60)
    if answer.is_success:
        answer = httpx.put(f"{url}/runs/{answer.json()['id']}/iterations/0", json=report(0), timeout=60)
    if answer.is_success:
        return False
    assert (answer.status_code, answer.json()["type"]) == (503, "/problems/disk-full")
    return True


@pytest.mark.slow
def test_a_full_disk_is_said_and_forgotten_when_there_is_room(
    disk: Path, grow: Callable[[], object], steward_factory: StartSteward, tmp_path: Path
) -> None:
    url = f"sqlite:///{disk / 'steward.db'}"
    api = steward_factory(tmp_path / "data", "--workers", "0", wait="alive", database_url=url)
    with Reporting(api.url) as reporting:
        fill(disk)
        wait_until(lambda: 503 in reporting.statuses, 150, "the disk to run full")
        wait_until(lambda: refused(api.url), 150, "a report that finds no room")
        before = reporting.counts
        answer = httpx.get(f"{api.url}/runs/{next(iter(before))}", timeout=60)
        assert answer.status_code == 200  # what is stored can be read
        grow()
        reporting.wait_for_more(5)
    reporting.check()
    assert reporting.statuses <= {200, 201, 503}


@pytest.mark.servers
@pytest.mark.slow
def test_a_full_disk_of_postgresql_is_said_and_forgotten_when_there_is_room(
    disk: Path, grow: Callable[[], object], steward_factory: StartSteward
) -> None:
    """Its log has room: where that has none, the server itself goes down, as in a failover."""
    space = disk / "space"
    space.mkdir()
    os.chown(space, pwd.getpwnam("postgres").pw_uid, -1)
    with postgres_server() as server:
        api = steward_factory(None, "--workers", "0", wait="alive", database_url=server.url())
        server.execute(f"CREATE TABLESPACE small LOCATION '{space}'")
        server.execute("ALTER TABLE iterations SET TABLESPACE small")
        with Reporting(api.url) as reporting:
            fill(disk)
            wait_until(lambda: 503 in reporting.statuses, 150, "the disk to run full")
            wait_until(lambda: refused(api.url), 150, "a report that finds no room")
            grow()
            reporting.wait_for_more(5)
        reporting.check()
        assert reporting.statuses <= {200, 201, 503}
        api.stop()
