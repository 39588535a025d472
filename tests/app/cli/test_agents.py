"""`steward agent show` starts what learns as a child, and hands its answer on; what can't be drawn is refused."""

import subprocess

import pytest
from typer.testing import CliRunner

from app.cli.main import cli
from app.cli.options import SUFFIXES
from workers.evaluation.report import plot


def test_the_childs_answer_and_status_are_handed_on(capfd: pytest.CaptureFixture[str]) -> None:
    found = CliRunner().invoke(cli, ["agent", "show", "dqn", "--observation", "4", "--actions", "3"])
    assert found.exit_code == 0
    assert "q.trunk (Trunk): 4,480 parameters" in capfd.readouterr().out
    refused = CliRunner().invoke(cli, ["agent", "show", "sarsa", "--observation", "4", "--actions", "3"])
    assert refused.exit_code == 2
    assert "no algorithm is called 'sarsa'" in capfd.readouterr().err


@pytest.mark.parametrize("command", [["train", "w"], ["agent", "report", "w"], ["simulate", "nowhere.swf"]])
def test_a_plot_that_can_not_be_drawn_is_refused_before_anything_runs(
    command: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def begun(*_: object, **__: object) -> None:
        raise AssertionError("something was begun")

    monkeypatch.setattr(subprocess, "run", begun)
    monkeypatch.setattr("app.cli.remote.train.Service", begun)
    monkeypatch.setattr("app.cli.remote.agent_report.Service", begun)
    found = CliRunner().invoke(cli, [*command, "--plot", "there/x.gif"])
    assert found.exit_code == 2
    assert "x.gif: a plot is one of .html, .svg, .png" in found.output


def test_what_may_be_asked_for_is_what_can_be_drawn() -> None:
    assert SUFFIXES == plot.SUFFIXES


def test_a_version_is_a_number_or_a_role() -> None:
    found = CliRunner().invoke(cli, ["agent", "report", "w", "best"])
    assert (found.exit_code, "champion or newest" in found.output) == (2, True)
