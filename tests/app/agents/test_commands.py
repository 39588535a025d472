"""`steward agent show` starts what learns as a child, and hands its answer on."""

import pytest
from typer.testing import CliRunner

from app.cli import cli


def test_the_childs_answer_and_status_are_handed_on(capfd: pytest.CaptureFixture[str]) -> None:
    found = CliRunner().invoke(cli, ["agent", "show", "dqn", "--observation", "4", "--actions", "3"])
    assert found.exit_code == 0
    assert "q.trunk (Trunk): 4,480 parameters" in capfd.readouterr().out
    refused = CliRunner().invoke(cli, ["agent", "show", "sarsa", "--observation", "4", "--actions", "3"])
    assert refused.exit_code == 2
    assert "no algorithm is called 'sarsa'" in capfd.readouterr().err
