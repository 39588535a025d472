"""A Steward service for the demo: ``steward serve`` with default settings in a temporary folder."""

import os
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from app.demo.api import Steward
from app.demo.processes import STOP_SECONDS, ChildError
from app.processes import child_command

READY_SECONDS = 60.0


def free_port() -> int:
    """A loopback port that is free now."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@contextmanager
def own_service() -> Iterator[Steward]:
    """Context manager: a service, started within 60 s, else it raises ChildError; its data are deleted at the end."""
    with tempfile.TemporaryDirectory(prefix="steward-demo-") as folder:
        port = free_port()
        process = _start(Path(folder), port)
        try:
            with Steward(f"http://127.0.0.1:{port}") as steward:
                _wait(steward, process, Path(folder))
                yield steward
        finally:
            _stop(process)


def _start(folder: Path, port: int) -> "subprocess.Popen[bytes]":
    """Start the service without the STEWARD_ variables of the environment."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("STEWARD_")}
    command = child_command("app.cli", "serve", "--port", str(port), "--data", str(folder))
    with (folder / "serve.log").open("wb") as log:
        return subprocess.Popen(command, stdout=log, stderr=log, env=environment, start_new_session=True)


def _wait(steward: Steward, process: "subprocess.Popen[bytes]", folder: Path) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while not steward.ready():
        if process.poll() is not None or time.monotonic() > deadline:
            log = (folder / "serve.log").read_text(errors="replace")[-2000:]
            raise ChildError(f"the service did not become ready within {READY_SECONDS:g} s:\n{log}")
        time.sleep(0.05)


def _stop(process: "subprocess.Popen[bytes]") -> None:
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
