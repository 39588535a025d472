"""What `steward evaluate` prints, and how it ends."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any, Self

import pytest
from rich.console import Console
from typer.testing import CliRunner

from app.cli.main import cli
from app.cli.remote import evaluate as asking
from app.cli.remote.evaluate import Options, reaches_class, run, words
from app.cli.remote.service import RefusedError, UnreachableError
from tests.workers.evaluation.report.sample import report

VERDICTS: list[dict[str, Any]] = [
    {"agent": 3, "level": "L2", "reason": "L3 can't be judged"},
    {"agent": 5, "level": None, "reason": "worse"},
]
FOUND = {"id": "e1", "verdicts": VERDICTS, "report": report("agent 3", "agent 5", workload="[bold]w")}


class Played:
    """Plays the service; `ending` is raised while the job is followed."""

    calls: list[tuple[str, str]]

    def __init__(self, ending: BaseException | None = None) -> None:
        self.ending, self.calls = ending, []

    def __call__(self, url: str) -> Played:
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def call(self, method: str, path: str, **_: Any) -> dict[str, Any]:
        self.calls.append((method, path))
        return FOUND if method == "GET" else {"id": "j1"}

    def download(self, path: str) -> bytes:
        self.calls.append(("GET", path))
        return b"<!doctype html>"

    def follow(self, job: str) -> Any:
        yield {"state": "running", "progress": 0.5, "eta_seconds": 3.0, "phase": "playing", "level": "L1"}
        if self.ending is not None:
            raise self.ending
        yield {"state": "succeeded", "progress": 1.0, "result": {"evaluation": "e1"}}


def ran(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, played: Played, **options: Any
) -> tuple[int, str, str, Played]:
    """Exit status, output, notes, and the service that was called."""
    monkeypatch.setattr(asking, "Service", played)
    output, notes = (Console(file=io.StringIO(), width=120) for _ in range(2))
    status = run(Options("http://there", {"workload": "w"}, tmp_path / "r.html", **options), output, notes)
    return status, written(output), written(notes), played


def written(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_table_says_who_passed_what(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    status, output, notes, played = ran(monkeypatch, tmp_path, Played())
    assert status == 0
    counted, returned = output.split("Mean return")
    rows = {line[:17].strip(): line for line in returned.splitlines()}
    lines = [line.split() for line in counted.splitlines()]
    assert ["agent", "3", *["4.2", "%"] * 3, "–", "4.2", "%"] in lines
    assert ["best", "heuristic", *["3.14"] * 3, "–", "3.14"] in lines
    assert (rows["agent 3"].count("✓"), rows["agent 5"].count("✗"), "–" in rows["agent 3"]) == (4, 4, True)
    assert "✓" not in rows["model_predictive"]
    assert " on [bold]w" in returned  # nothing that a name holds is obeyed
    assert "agent 3: L2" in output
    assert "agent 5: no class" in output
    assert (tmp_path / "r.html").read_bytes() == b"<!doctype html>"
    assert played.calls[-1] == ("GET", "/evaluations/e1/report")
    assert "r.html" in "".join(notes.split())


def test_a_verdict_of_an_earlier_judge_is_dated_and_said_to_be_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    past = [{**VERDICTS[0], "current": False}, {**VERDICTS[1], "current": True}]
    monkeypatch.setitem(FOUND, "verdicts", past)
    monkeypatch.setitem(FOUND, "created_at", "2026-01-02T08:00:00Z")
    _, output, _, _ = ran(monkeypatch, tmp_path, Played())
    assert "agent 3: L2, by an earlier version of the judge: evaluate it again (2026-01-02 08:00:00 UTC)" in output
    assert "agent 5: no class (2026-01-02 08:00:00 UTC)" in output


def test_tables_fit_80_columns() -> None:
    console = Console(file=io.StringIO(), width=80)
    asking.show(FOUND, console)
    counted = written(console).split("Mean return")[0].splitlines()
    assert max(map(len, counted)) <= 80
    assert not any("…" in line for line in counted)


def test_what_was_found_before_is_told_alike(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(asking, "Service", Played())
    monkeypatch.setattr(asking, "meant", lambda *_: "e1")
    asking.again("http://there", "newest", as_json=False)
    assert "Mean return" in capsys.readouterr().out
    asking.again("http://there", "newest", as_json=True)
    assert json.loads(capsys.readouterr().out) == FOUND


def test_programs_get_json(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    status, output, _, _ = ran(monkeypatch, tmp_path, Played(), as_json=True)
    assert (status, json.loads(output)) == (0, FOUND)


@pytest.mark.parametrize(
    ("ending", "status", "text"),
    [
        (RefusedError({"title": "No agent", "detail": "[red]none[/]"}), 1, "No agent: [red]none[/]"),
        (UnreachableError("nobody there"), 3, "nobody there"),
        (KeyboardInterrupt(), 130, "cancelled"),
    ],
)
def test_the_exit_status_says_how_it_ended(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, ending: BaseException, status: int, text: str
) -> None:
    result, _, notes, played = ran(monkeypatch, tmp_path, Played(ending))
    assert (result, text in notes) == (status, True)
    assert (("POST", "/jobs/j1/cancel") in played.calls) == isinstance(ending, KeyboardInterrupt)
    assert not (tmp_path / "r.html").exists()


@pytest.mark.parametrize(("required", "agents", "enough"), [(None, 2, True), ("L2", 1, True), ("L3", 1, False)])
def test_a_class_can_be_required_of_every_agent(required: str | None, agents: int, enough: bool) -> None:
    assert reaches_class({"verdicts": VERDICTS[:agents]}, required) is enough


def test_one_agent_below_what_is_required_is_an_exit_status(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert ran(monkeypatch, tmp_path, Played(), require="L0")[0] == 4


def test_the_bar_says_where_it_is() -> None:
    event = {"state": "running", "eta_seconds": 12.4, "phase": "playing", "level": "L2", "policy": "hold"}
    assert words(event) == "running, about 12 s left, playing L2 hold"
    assert words({"state": "queued"}) == "queued"


def test_what_cannot_be_asked_is_said_at_once() -> None:
    for arguments in (["--level", "L7"], ["--seeds", "4"], ["--require", "best"], ["--colour"]):
        assert CliRunner().invoke(cli, ["evaluate", "w", *arguments]).exit_code == 2


@pytest.mark.parametrize("command", ["train", "evaluate"])
@pytest.mark.parametrize(("parts", "value"), [([], None), (["--equivalence-margin", "0.05"], 0.05)])
def test_the_margin_of_equivalence_is_sent_where_it_is_given(
    monkeypatch: pytest.MonkeyPatch, command: str, parts: list[str], value: float | None
) -> None:
    requests: list[dict[str, Any]] = []

    def run(options: Any) -> int:
        requests.append(options.request)
        return 0

    monkeypatch.setattr(f"app.cli.remote.{command}.run", run)
    assert CliRunner().invoke(cli, [command, "w", *parts]).exit_code == 0
    assert requests[0].get("equivalence_margin") == value


def test_nobody_at_the_address_is_an_exit_status(tmp_path: Path) -> None:
    done = CliRunner().invoke(cli, ["evaluate", "w", "--url", "http://127.0.0.1:1", "--out", str(tmp_path / "r.html")])
    assert done.exit_code == 3
