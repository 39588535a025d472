"""`steward agent graph` starts what learns as a child, and hands its answer on; what can't be drawn is refused."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from typing import Any, ClassVar, Self

import pytest
from typer.testing import CliRunner

from app.cli.main import cli
from app.cli.options import DONE, SUFFIXES, UNMET
from workers.evaluation.report import plots


def test_the_childs_answer_and_status_are_handed_on(capfd: pytest.CaptureFixture[str]) -> None:
    result = CliRunner().invoke(cli, ["agent", "graph", "dqn", "--observation", "4", "--actions", "3"])
    assert result.exit_code == 0
    assert "q.trunk (Trunk): 4,480 parameters" in capfd.readouterr().out
    refused = CliRunner().invoke(cli, ["agent", "graph", "sarsa", "--observation", "4", "--actions", "3"])
    assert refused.exit_code == 2
    assert "no algorithm is called 'sarsa'" in capfd.readouterr().err


@pytest.mark.parametrize("command", [["train", "w"], ["agent", "show", "w"], ["simulate", "nowhere.swf"]])
def test_a_plot_that_can_not_be_drawn_is_refused_before_anything_runs(
    command: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def begun(*_: object, **__: object) -> None:
        raise AssertionError("something was begun")

    monkeypatch.setattr(subprocess, "run", begun)
    monkeypatch.setattr("app.cli.remote.train.Service", begun)
    monkeypatch.setattr("app.cli.remote.agent_report.Service", begun)
    result = CliRunner().invoke(cli, [*command, "--plot", "there/x.gif"])
    assert result.exit_code == 2
    assert "x.gif: a plot is one of .html, .svg, .png" in result.output


def test_what_may_be_asked_for_is_what_can_be_drawn() -> None:
    assert SUFFIXES == plots.SUFFIXES


def test_a_version_is_a_number_or_a_role() -> None:
    result = CliRunner().invoke(cli, ["agent", "show", "w", "best"])
    assert (result.exit_code, "champion or newest" in result.output) == (2, True)


class Trained:
    """A service that trains at once: what it was asked for, and that no window brought an agent."""

    calls: ClassVar[list[Any]] = []

    def __init__(self, url: str) -> None:
        self.url = url

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def call(self, method: str, path: str, json: Any) -> dict[str, str]:
        self.calls.append((method, path, json))
        return {"id": "j1"}

    def follow(self, job: str) -> Iterator[dict[str, Any]]:
        yield {"id": job, "state": "succeeded", "result": {"agent": None, "last": {"reason": "nothing was better"}}}


@pytest.mark.parametrize(("required", "status"), [([], DONE), (["--require-promoted"], UNMET)])
def test_a_training_that_goes_on_is_asked_for_window_by_window(
    required: list[str], status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.cli.remote.train.Service", Trained)
    windows = ["--window", "60", "--window-steps", "9000", "--windows", "4"]
    result = CliRunner().invoke(cli, ["train", "w", "--algorithm", "online", *windows, *required])
    method, path, request = Trained.calls[-1]
    assert (method, path, request["algorithm"]) == ("POST", "/workloads/w/agents", "online")
    assert request["online"] == {"window_seconds": 60.0, "steps": 9_000, "windows": 4}
    assert (result.exit_code, "nothing was better" in result.output) == (status, True)


def test_windows_are_not_spoken_of_where_they_were_not_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.cli.remote.train.Service", Trained)
    CliRunner().invoke(cli, ["train", "w"])
    assert "online" not in Trained.calls[-1][2]
