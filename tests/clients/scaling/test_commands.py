"""The commands: one as a process that listens until it is ended; all say in a line what they lack."""

from __future__ import annotations

import logging
import signal
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from app.cli.main import cli


@pytest.mark.parametrize("name", ["scaler", "adapter"])
def test_servers_say_where_they_listen_until_they_are_ended(name: str) -> None:
    command = [sys.executable, "-m", "steward_client.scaling.commands", name, "--port", "0", "--host", "127.0.0.1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith(f"{name}: listening at 127.0.0.1:")
        taken = CliRunner().invoke(cli, (name, "--port", line.strip().rpartition(":")[2]), catch_exceptions=False)
        process.send_signal(signal.SIGTERM)
        _, complaints = process.communicate(timeout=60)
    assert (process.returncode, complaints) == (0, "")
    assert taken.exit_code == 1
    assert taken.stderr.startswith(f"steward {name}: --host, --port: 127.0.0.1:")
    assert taken.stderr.endswith(": Address already in use\n")


def test_sigterm_ends_those_that_look_again_and_again() -> None:
    arguments = ["shop/Model=gpus", "--workload", "shop", "--url", "http://127.0.0.1:1"]
    command = [sys.executable, "-m", "steward_client.scaling.commands", "replicas", *arguments]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert "Connection refused" in process.stderr.readline()
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("scaler", "--tls-cert", __file__), "steward scaler: TLS needs --tls-cert and --tls-key together"),
        (("adapter", "--tls-key", __file__), "steward adapter: TLS needs --tls-cert and --tls-key together"),
        (
            ("scaler", "--tls-cert", __file__, "--tls-key", __file__),
            f"steward scaler: --tls-cert {__file__}, --tls-key {__file__}: no certificate and its key: ",
        ),
        (("adapter", "--url", "steward:8080"), "steward adapter: --url: 'steward:8080' is not an address"),
        (
            ("replicas", "shop/Model=gpus", "--workload", "shop", "--url", "http://127.0.0.1:1", "--once"),
            "steward replicas: GET /workloads/shop: no answer of http://127.0.0.1:1 in 2 s",
        ),
        (("recommender", "--once"), "steward recommender: not in a pod with a service account"),
        (("recommender", "--once", "--kubernetes", "http://127.0.0.1:1"), "steward recommender: GET /apis/autoscaling"),
    ],
)
def test_what_they_lack_is_told_in_a_line(
    arguments: tuple[str, ...], text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    monkeypatch.setattr(logging.getLogger("steward_client"), "disabled", True)  # a service that is waited for is logged
    done = CliRunner().invoke(cli, arguments, catch_exceptions=False)
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.startswith(text)
    assert done.stderr.count("\n") == 1


def test_the_client_without_its_extra_says_what_installs_it() -> None:
    start = "import runpy, sys; sys.modules['typer'] = None; runpy.run_module('steward_client.scaling.commands', None, "
    done = subprocess.run([sys.executable, "-c", f"{start}'__main__')"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith('typer isn\'t installed: pip install "$(echo dist/steward_client-*.whl)[scaling]"')
