"""The release before and this one serve one database side by side while reports come; and there is a way back.

The release before is the code that the newest migration was added to, taken from the history of this repository.
"""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from alembic.script import ScriptDirectory

from app.database.engine import Database
from app.database.tables import Iteration
from migrations.runner import HERE, configuration, downgrade, upgrade
from tests.conftest import StartSteward
from tests.integration.caller import SPEC, WORKLOAD
from tests.servers import clean_environment, free_port, stop, wait_until

ROOT = HERE.parent
START_SECONDS = 200


def git(*asked: str) -> bytes:
    return subprocess.run(["git", "-C", str(ROOT), *asked], capture_output=True, check=True).stdout


def before_the_newest_migration() -> str:
    """The commit; none is known where the history does not reach back."""
    newest = ScriptDirectory.from_config(configuration("")).get_current_head()
    try:
        added = git("log", "-1", "--diff-filter=A", "--format=%P", "--", f"migrations/versions/{newest}.py").split()
        git("cat-file", "-e", f"{added[0].decode()}^{{commit}}")
    except (IndexError, OSError, subprocess.CalledProcessError):
        pytest.skip("the history of this checkout does not reach back to the release before")
    return added[0].decode()


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the code of the release before."""
    folder = tmp_path_factory.mktemp("earlier")
    with tarfile.open(fileobj=io.BytesIO(git("archive", before_the_newest_migration(), "app", "migrations"))) as code:
        code.extractall(folder, filter="data")
    return folder


@contextmanager
def earlier_release(code: Path, data: Path, **settings: str) -> Iterator[str]:
    """Its API in a process of its own; gives its address."""
    port = free_port()
    data.mkdir(parents=True, exist_ok=True)
    given = {"PYTHONPATH": str(code), **{f"STEWARD_{name.upper()}": value for name, value in settings.items()}}
    command = [sys.executable, "-m", "app.cli", "serve", "--port", str(port), "--data", str(data), "--workers", "0"]
    log = data / "earlier.log"
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, env=clean_environment(given), cwd=code)
    try:
        url = f"http://127.0.0.1:{port}"
        wait_until(lambda: _answers(url) or process.poll() is not None, START_SECONDS, "the release before to answer")
        assert process.poll() is None, log.read_text()
        yield url
    finally:
        stop(process)


def _answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/healthz", timeout=5).status_code == 200
    except httpx.HTTPError:
        return False


def report(url: str, run: str, number: int) -> Any:
    body = {"allocation": {"executors": 8}, "metrics": {"iteration_seconds": 3.0 + number / 7}}
    answer = httpx.put(f"{url}/runs/{run}/iterations/{number}", json=body, timeout=60)
    assert answer.status_code in (200, 201), answer.text
    return answer.status_code, answer.json()


def told(url: str, run: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = httpx.get(f"{url}/runs/{run}/iterations?limit=500", timeout=60).json()["items"]
    return found


def essence(decisions: list[dict[str, Any]]) -> list[Any]:
    """What was decided, and why; lists write times and empty fields in a form of their own."""
    return [[one[name] for name in ("run", "reported", "allocation", "predicted", "reason")] for one in decisions]


@pytest.mark.slow
@pytest.mark.parametrize("url", ["sqlite_url", pytest.param("postgres_url", marks=pytest.mark.servers)])
def test_both_releases_serve_one_database_and_there_is_a_way_back(
    request: pytest.FixtureRequest, earlier: Path, steward_factory: StartSteward, tmp_path: Path, url: str
) -> None:
    database_url = request.getfixturevalue(url)
    downgrade(database_url, "-1")
    with earlier_release(earlier, tmp_path / "earlier", database_url=database_url) as old:
        assert httpx.post(f"{old}/workloads", json={**SPEC, "iterations": 1000}).status_code == 201
        run = httpx.post(f"{old}/runs", json={"workload": WORKLOAD}).json()["id"]
        answers = [report(old, run, number)[1] for number in range(3)]
        settings = {"database_url": database_url, "pack_reports": "false"}
        new = steward_factory(tmp_path / "new", "--workers", "0", wait="alive", **settings)  # it migrates
        for number in range(3, 15):
            status, answer = report((old, new.url)[number % 2], run, number)
            assert status == 201
            answers.append(answer)
            assert report((new.url, old)[number % 2], run, number) == (200, answer)
        assert told(old, run) == told(new.url, run)
        assert essence([one["decision"] for one in told(new.url, run)]) == essence(answers)
        fresh = httpx.post(f"{old}/runs", json={"workload": WORKLOAD}).json()["id"]
        assert report(new.url, fresh, 0)[0] == 201
        new.stop()
        assert report(old, fresh, 1)[0] == 201
    packing = steward_factory(tmp_path / "new", "--workers", "0", wait="alive", database_url=database_url)
    answers += [report(packing.url, run, number)[1] for number in range(15, 20)]
    everything = told(packing.url, run)
    assert essence([one["decision"] for one in everything]) == essence(answers)
    packing.stop()
    downgrade(database_url, "-1")
    with earlier_release(earlier, tmp_path / "earlier", database_url=database_url) as old:
        assert told(old, run) == everything
        assert report(old, run, 19)[0] == 200
        assert report(old, run, 20)[0] == 201
    upgrade(database_url)
    database = Database(database_url)
    try:
        with database.reading() as session:
            assert session.query(Iteration).filter_by(run_id=run).count() == 21
    finally:
        database.dispose()
