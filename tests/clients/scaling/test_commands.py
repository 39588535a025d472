"""The commands: one as a process that listens until it is ended; all say in a line what they lack."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from app.cli.main import cli


def test_the_scaler_listens_until_it_is_ended() -> None:
    command = [sys.executable, "-m", "steward_client.scaling.commands", "scaler", "--port", "0", "--host", "127.0.0.1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("scaler: listening at 127.0.0.1:")
        process.send_signal(signal.SIGTERM)
        _, complaints = process.communicate(timeout=60)
    assert (process.returncode, complaints) == (0, "")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("scaler", "--tls-cert", __file__), "steward scaler: TLS needs --tls-cert and --tls-key together"),
        (("adapter", "--tls-key", __file__), "steward adapter: TLS needs --tls-cert and --tls-key together"),
        (("recommender", "--once"), "steward recommender: not in a pod with a service account"),
        (("recommender", "--once", "--kubernetes", "http://127.0.0.1:1"), "steward recommender: GET /apis/autoscaling"),
    ],
)
def test_what_they_lack_is_told_in_a_line(
    arguments: tuple[str, ...], text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    done = CliRunner().invoke(cli, arguments, catch_exceptions=False)
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.startswith(text)
    assert done.stderr.count("\n") == 1
