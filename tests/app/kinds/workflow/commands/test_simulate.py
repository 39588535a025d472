"""``steward simulate`` hands over what it is asked, and the exit status of what plays."""

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from app.cli.main import cli


def test_all_that_is_asked_is_handed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    parts: list[list[str]] = []

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[bytes]:
        parts.append(command)
        return subprocess.CompletedProcess(command, 1)

    monkeypatch.setattr(subprocess, "run", run)
    options = ["--strategy", "F4", "--backfilling", "rls", "--exact-runtimes", "--nodes", "256", "--json"]
    result = CliRunner().invoke(cli, ["simulate", "--sequences", "1981:1024", *options, "log.swf"])
    assert result.exit_code == 1
    (command,) = parts
    assert "workers.kinds.workflow.simulator" in command
    assert command[-2:] == ["--", "log.swf"]
    expected = {"--strategy=F4", "--backfilling=rls", "--exact-runtimes", "--nodes=256", "--json"}
    assert expected | {"--sequences=1981:1024"} <= set(command)


def test_misuse_is_told_before_anything_runs() -> None:
    result = CliRunner().invoke(cli, ["simulate", "log.swf", "--backfilling", "lifo"])
    assert result.exit_code == 2


@pytest.mark.slow
def test_a_log_from_outside(tmp_path: Path) -> None:
    log = tmp_path / "log.swf"
    log.write_text("; MaxProcs: 4\n1 0 -1 100 4 -1 -1 4 200 -1 1 1 1 -1 1 -1 -1 -1\n")
    command = [sys.executable, "-m", "app.cli", "simulate", str(log), "--strategy", "fcfs"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "fcfs" in done.stdout
    assert subprocess.run([*command, "--nodes", "2"], capture_output=True, check=False).returncode == 1
    with subprocess.Popen([*command, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as unheard:
        assert unheard.stdout is not None
        assert unheard.stderr is not None
        unheard.stdout.close()  # as `| head` does
        assert unheard.stderr.read() == b""
    assert unheard.returncode == 0
