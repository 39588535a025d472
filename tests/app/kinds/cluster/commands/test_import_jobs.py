"""``steward import jobs``: what it tells of a cluster's files, and its exit status."""

import json
from pathlib import Path

from typer.testing import CliRunner

from app.cli.main import cli

EXAMPLE = Path(__file__).parents[5] / "docs" / "jobs"


def invoke(*arguments: object) -> tuple[int, str, str]:
    found = CliRunner().invoke(cli, ["import", "jobs", *map(str, arguments), "--spec", str(EXAMPLE / "lab.json")])
    return found.exit_code, found.stdout, found.stderr


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


def test_what_cannot_be_right_is_told_with_its_line(tmp_path: Path) -> None:
    wrong = tmp_path / "jobs.csv"
    wrong.write_text("time,queue,gpus\n5,urgent,2\n4,nobody,1\n")
    status, _, complaints = invoke(wrong, "--check")
    assert status == 1
    told = " ".join(complaints.split())
    assert "line 3, time: must not be less than the time before it" in told
    assert "line 3, queue: unknown queue; known: urgent, batch" in told
    assert json.loads((EXAMPLE / "lab.json").read_text())["kind"] == "cluster"
