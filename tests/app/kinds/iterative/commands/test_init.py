"""`steward init`: a spec by question and answer, or from a log, that the kind takes; each guess has its reason."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from app.cli.main import cli
from app.kinds.iterative.kind import KIND
from app.kinds.iterative.spec import IterativeSpec

TOUR = Path(__file__).parents[5] / "docs/tour/samples.csv"
HEAD = "execution,iteration,allocation.cpu,metric.iteration_seconds,metric.loss,feature.batch\n"


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "spec.json"


def init(out: Path, *arguments: str, answers: str = "") -> Result:
    return CliRunner().invoke(cli, ["init", *arguments, "--out", str(out)], input=answers, catch_exceptions=False)


def written(out: Path) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(out.read_text())
    IterativeSpec.model_validate(body)
    return body


def test_nothing_but_proposals_is_a_spec(out: Path) -> None:
    done = init(out)
    assert done.exit_code == 0
    spec = written(out)
    assert (spec["name"], spec["iterations"], spec["resources"][0]["maximum"]) == ("my-training", 100, 8)
    assert spec["metrics"] == [
        {"name": "iteration_seconds", "unit": "s", "target": 1800, "goal": "at_most", "scope": "run"}
    ]
    assert f"steward workload create {out}" in done.stderr
    again = init(out)
    assert (again.exit_code, "is there already" in again.stderr) == (2, True)
    assert init(out, "--force").exit_code == 0


def test_answers_are_asked_for_again_until_they_can_be_right(out: Path) -> None:
    resource = ["gpus", "1", "8.5", "", "2.5"]  # in steps of 1: refused, and asked for again
    again = ["", "", "eight", "8", "", ""]
    answers = [*resource, *again, "n", "0", "12", "pace", "0", "20", "y", "batch", "64", "64", "", "1", "512", "n"]
    done = init(out, "My Training!", "--json", answers="\n".join(answers) + "\n")
    assert done.exit_code == 0
    spec = written(out)
    assert json.loads(done.stdout) == spec
    assert spec["name"] == "my-training"
    numbers = {"minimum": 1, "maximum": 8, "step": 1, "price_per_hour": 2.5}
    assert spec["resources"] == [{"name": "gpus", **numbers}]
    assert (spec["iterations"], spec["metrics"][0]["target"], spec["metrics"][0]["scope"]) == (12, 20, "iteration")
    assert spec["features"] == [{"name": "batch", "minimum": 1, "maximum": 512}]
    for refused in ("must divide the range", "must be 1 or more", "must be more than 0", "must be less than"):
        assert refused in done.stderr


def test_where_answers_end_before_they_are_right_nothing_is_written(out: Path) -> None:
    done = init(out, "mine", answers="gpus\n1\n8.5\n")
    assert (done.exit_code, out.exists()) == (2, False)
    assert "step 1 must divide the range 1 to 8.5" in done.stderr.splitlines()[-1]


@pytest.mark.parametrize("packed", [False, True])
def test_a_spec_from_a_log_takes_that_log(out: Path, tmp_path: Path, packed: bool) -> None:
    log = tmp_path / ("log.csv.gz" if packed else "log.csv")
    log.write_bytes(gzip.compress(TOUR.read_bytes()) if packed else TOUR.read_bytes())
    done = init(out, "--from", str(log))
    assert done.exit_code == 0, done.stderr
    spec = written(out)
    assert (spec["name"], spec["iterations"]) == ("log", 6)
    assert [spec["resources"][0][name] for name in ("minimum", "maximum", "step", "initial")] == [1, 8, 1, 4]
    layout = KIND.layout(IterativeSpec.model_validate(spec))
    reader = KIND.samples.formats["text/csv"].reader(KIND.samples(layout), "log")
    assert len([*reader.read(iter([TOUR.read_bytes()]))]) == 12
    for result in (
        "resource gpus: 6 values from 1 to 8",
        "iterations 6: as the longest of 12",
        "deadline 120 s: 6 iter",
    ):
        assert result in done.stderr
    assert f"steward samples create log {log}" in done.stderr


def test_what_a_log_can_not_tell_is_said(out: Path, tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text(HEAD + "a,0,0.5,3,1.5,8\na,1,1.25,2,1.25,8\n")
    done = init(out, "mine", "--from", str(log), "--iterations", "9", "--deadline", "60")
    spec = written(out)
    assert spec["resources"][0]["step"] == 0.75
    assert spec["features"] == [{"name": "batch", "minimum": 0, "maximum": 16}]
    assert [metric["name"] for metric in spec["metrics"]] == ["iteration_seconds", "loss"]
    assert (spec["iterations"], spec["metrics"][0]["target"]) == (9, 60)
    assert "feature batch: only 8 was seen" in done.stderr
    assert "metric loss: recorded and predicted" in done.stderr


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("epoch,loss\n1,2\n", "line 1: column 'epoch' isn't known; columns are execution, iteration"),
        ("execution,allocation.cpu\na,1\n", "line 1: the header isn't known"),
        (HEAD, "line 2: there is no row"),
        (HEAD + "a,0,many,3,1,8\n", "line 2: allocation.cpu: must be a number, not 'many'"),
        (HEAD + "a,0,1\n", "line 2: has 3 cells, not 6"),
        ("execution,iteration,metric.iteration_seconds\na,0,3\n", "no column tells what was allocated"),
        (HEAD + "a,0,1e9,3,1,8\na,1,0.001,3,1,8\na,2,1,3,1,8\n", "the allocation grid has"),
        ("\x00\udcff", "line 1: is no CSV file"),
    ],
)
def test_a_log_that_is_none_is_refused_by_its_line(out: Path, tmp_path: Path, text: str, reported: str) -> None:
    log = tmp_path / "log.csv"
    log.write_bytes(text.encode(errors="surrogateescape"))
    done = init(out, "--from", str(log))
    assert (done.exit_code, out.exists()) == (2, False)
    assert reported in done.stderr
