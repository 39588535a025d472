"""`steward train --plot` and `steward agent show`: what is printed, what is drawn, and how it ends."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import pytest
from rich.console import Console

from app.cli.remote import agent_report as reported
from app.cli.remote import train as training
from app.cli.remote.service import UnreachableError
from tests.app.cli.remote.test_train import report

AGENT: dict[str, Any] = {
    "workload": "w",
    "version": 4,
    "algorithm": "ppo",
    "champion": False,
    "promoted": False,
    "report": report(),
}
SINCE, UNTIL, TRAINED = (f"2026-01-0{day}T08:00:00Z" for day in (3, 4, 2))


class Played:
    """Plays the service, with so many agents."""

    def __init__(self, agents: int = 4, champion: int | None = 2) -> None:
        self.agents, self.champion, self.calls = agents, champion, list[str]()

    def __call__(self, url: str) -> Played:
        if url == "http://nowhere":
            raise UnreachableError("nobody there")
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def call(self, method: str, path: str, **_: Any) -> dict[str, Any]:
        self.calls.append(f"{method} {path}")
        if path.endswith("?limit=1"):
            return {"items": [{"version": self.agents}][: self.agents]}
        if path == "/workloads/w":
            return {"champion": self.champion}
        return {"id": "j1"} if method == "POST" else AGENT

    def follow(self, job: str) -> Any:
        yield {"state": "succeeded", "progress": 1.0, "result": {"agent": 4}}


def ran(run: Callable[..., int], options: Any) -> tuple[int, str, str]:
    """Exit status, output, notes."""
    output, notes = (Console(file=io.StringIO(), width=200) for _ in range(2))
    status = run(options, output, notes)
    return status, *(console.file.getvalue() for console in (output, notes))  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("choice", "version"), [("3", "3"), ("newest", "4"), ("champion", "2")], ids=["number", "newest", "champion"]
)
def test_the_agent_that_is_meant_is_told(monkeypatch: pytest.MonkeyPatch, choice: str, version: str) -> None:
    played = Played()
    monkeypatch.setattr(reported, "Service", played)
    status, output, _ = ran(reported.run, reported.Options("http://there", "w", choice))
    assert (status, played.calls[-1]) == (0, f"GET /workloads/w/agents/{version}")
    assert "agent 4: ppo, never promoted" in output
    assert "promoted: it is good" in output
    _, output, _ = ran(reported.run, reported.Options("http://there", "w", choice, as_json=True))
    assert json.loads(output) == AGENT


@pytest.mark.parametrize(
    ("agent", "text"),
    [
        ({"champion": True, "champion_since": SINCE}, "champion since 2026-01-03 08:00:00 UTC"),
        (
            {"champion_since": SINCE, "champion_until": UNTIL, "promoted": True},
            "was champion until 2026-01-04 08:00:00 UTC",
        ),
        ({}, "never promoted"),
    ],
)
def test_what_an_agent_is_now_stands_beside_its_verdict_of_the_past(
    monkeypatch: pytest.MonkeyPatch, agent: dict[str, Any], text: str
) -> None:
    bad = {**report(), "reason": "not promoted: not better"}
    monkeypatch.setattr(reported, "Service", Played())
    for name, value in {**agent, "created_at": TRAINED, "report": bad}.items():
        monkeypatch.setitem(AGENT, name, value)
    _, output, _ = ran(reported.run, reported.Options("http://there", "w", "4"))
    assert f"agent 4: ppo, {text}" in output
    assert "verdict when its training ended, 2026-01-02 08:00:00 UTC: not promoted: not better" in output


def test_what_holds_now_stands_before_the_verdict_of_the_past(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(reported, "Service", Played())
    now = {"standing_reason": "outdated: retrain (the price of gpus is 4)", "instead": "the heuristic hold, as good"}
    for name, value in now.items():
        monkeypatch.setitem(AGENT, name, value)
    file = tmp_path / "agent.html"
    _, output, _ = ran(reported.run, reported.Options("http://there", "w", "4", file))
    lines = output.splitlines()
    answers = lines.index("current policy: the heuristic hold, as good")
    assert lines[answers - 1] == "outdated: retrain (the price of gpus is 4)"
    assert lines[answers + 1].startswith("verdict when its training ended")
    page = file.read_text()
    assert page.index("Current policy: the heuristic hold, as good") < page.index("When its training ended:")


@pytest.mark.parametrize(
    ("url", "choice", "status", "text"),
    [
        ("http://there", "champion", 5, "the built-in policy decides for w"),
        ("http://there", "newest", 5, "steward agent create w"),
        ("http://nowhere", "1", 3, "nobody there"),
    ],
)
def test_the_exit_status_says_why_there_is_none(
    monkeypatch: pytest.MonkeyPatch, url: str, choice: str, status: int, text: str
) -> None:
    monkeypatch.setattr(reported, "Service", Played(agents=0, champion=None))
    result, _, notes = ran(reported.run, reported.Options(url, "w", choice))
    assert (result, text in notes) == (status, True)


def test_a_report_is_drawn_by_a_child(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(reported, "Service", Played())
    file = tmp_path / "new" / "agent.html"
    status, _, notes = ran(reported.run, reported.Options("http://there", "w", "4", file))
    assert (status, f"report: {file}" in notes) == (0, True)
    assert "Agent 4 of w" in file.read_text()


@pytest.mark.parametrize(("exit_status", "ended"), [(0, 0), (1, 1)])
def test_a_training_ends_with_its_plot(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, exit_status: int, ended: int
) -> None:
    drawn: list[tuple[Any, Path]] = []

    def draw(agent: Any, file: Path) -> int:
        drawn.append((agent, file))
        return exit_status

    monkeypatch.setattr(training, "Service", Played())
    monkeypatch.setattr(training, "draw_agent", draw)
    options = training.Options("http://there", "w", {}, plot=tmp_path / "agent.svg")
    status, output, notes = ran(training.run, options)
    assert (status, drawn) == (ended, [(AGENT, tmp_path / "agent.svg")])
    assert "agent 4: ppo" in output
    assert ("report: " in notes) == (ended == 0)
