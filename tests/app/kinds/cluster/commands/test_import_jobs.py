"""``steward import jobs``: what it tells of a cluster's files, its exit status, and what a kill leaves behind."""

import io
import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from rich.console import Console
from typer.testing import CliRunner

from app.cli.main import cli
from app.cli.remote.sample_import import Options, run
from app.database.engine import Database
from app.kinds.cluster.commands.import_jobs import JOBS
from app.kinds.cluster.layout import Layout
from app.kinds.cluster.model import ClusterModel
from app.kinds.cluster.spec import ClusterSpec
from tests.app.cli.remote.fitting_worker import FittingWorker, played_service

EXAMPLE = Path(__file__).parents[5] / "docs" / "jobs"


def invoke(*arguments: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(cli, ["import", "jobs", *map(str, arguments), "--spec", str(EXAMPLE / "research.json")])
    return result.exit_code, result.stdout, result.stderr


def test_people_are_told_what_is_in_their_files() -> None:
    status, output, complaints = invoke(EXAMPLE / "jobs.csv", EXAMPLE / "steps.csv", "--check")
    assert (status, complaints) == (0, "")
    for words in (
        "240 jobs over 40.3 hours from 2026-01-05 10:01:04 UTC",
        "how long they ran: median",
        "48 measured steps",
        "on 1, 2, 4, 8 GPUs",
    ):
        assert words in output


def test_one_job_step_and_point_are_in_the_singular(tmp_path: Path) -> None:
    job, step = ((EXAMPLE / name).read_text().splitlines(keepends=True)[:2] for name in ("jobs.csv", "steps.csv"))
    files = [tmp_path / f"{name}.csv" for name in ("jobs", "steps", "curves")]
    for file, rows in zip(files, (job, step, ["job,iteration,loss\n", "a,1,2.5\n"]), strict=True):
        file.write_text("".join(rows))
    status, output, complaints = invoke(*files, "--check")
    assert (status, complaints) == (0, "")
    lines = [line.partition(" from ")[0].strip() for line in output.splitlines()]
    assert {"1 job", "1 measured step", "1 point of 1 learning curve"} <= set(lines)


def test_what_cannot_be_right_is_told_with_its_line(tmp_path: Path) -> None:
    wrong = tmp_path / "jobs.csv"
    wrong.write_text("time,queue,gpus\n5,urgent,2\n4,nobody,1\n")
    status, _, complaints = invoke(wrong, "--check")
    assert status == 1
    reported = " ".join(complaints.split())
    assert "line 3, time: must not be less than the time before it" in reported
    assert "line 3, queue: unknown queue; known: urgent, batch" in reported
    assert json.loads((EXAMPLE / "research.json").read_text())["kind"] == "cluster"


class Killed(BaseException):
    """The process is gone: nothing is caught, and nothing said."""


class Killing:
    """Lets so many requests be answered, and kills who sent the last as its answer comes."""

    def __init__(self, client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left, self._send = float("inf"), client.send
        monkeypatch.setattr(client, "send", self.send)

    def send(self, request: Any, **options: Any) -> Any:
        """See ``httpx.Client.send``."""
        answer, self.left = self._send(request, **options), self.left - 1
        if self.left == 0:
            raise Killed
        return answer


REPORT = {"family": "ernest", "metrics": {"seconds": {"mape": 0.1, "naive_mape": 0.5, "coverage": 0.9}}}


def imported(files: Sequence[Path], spec: Path) -> str:
    console = Console(file=io.StringIO())
    assert run(JOBS, Options(files, spec, check=False, url="http://there"), console, console) == 0
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def stored_rows(client: TestClient, name: str) -> tuple[list[str], int, list[str]]:
    """Executions, models, and states of jobs."""
    samples = [one["execution"] for one in client.get(f"/workloads/{name}/samples").json()["items"]]
    models = client.get(f"/workloads/{name}/models").json()["items"]
    return samples, len(models), [one["state"] for one in client.get(f"/jobs?workload={name}").json()["items"]]


def test_an_import_that_was_killed_anywhere_is_said_again_and_nothing_is_doubled(
    tmp_path: Path, client: TestClient, backend: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = json.loads((EXAMPLE / "research.json").read_text())
    data = ClusterModel.unfitted(Layout(ClusterSpec.model_validate(body))).to_bytes()
    killing = Killing(played_service(client, FittingWorker(backend, data, REPORT), monkeypatch), monkeypatch)
    first, second, spec = (tmp_path / name for name in ("first.csv", "second.csv", "lab.json"))
    first.write_text("time,queue,gpus\n1,urgent,2\n"), second.write_text("time,queue,gpus\n2,batch,1\n")
    kills = 0
    for answers in itertools.count(1):
        spec.write_text(json.dumps({**body, "name": f"lab-{answers}"}))
        before = kills
        for files, expected in (([first], 1), ([first, second], 2)):
            killing.left = answers
            try:
                imported(files, spec)
            except Killed:
                kills += 1
            killing.left = float("inf")
            imported(files, spec)
            names = [file.stem for file in files]
            assert stored_rows(client, f"lab-{answers}") == (names, expected, ["succeeded"] * expected)
        if kills == before:
            assert "nothing new: model 2 stands" in imported(files, spec)
            break
    assert kills > 12
