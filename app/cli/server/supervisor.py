"""The worker that `steward serve` starts: a child process, started again when it ends unasked."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
import time

from app.settings import Settings

STOP_SECONDS = 15.0
LONGEST_PAUSE = 30.0

logger = logging.getLogger(__name__)


def worker_environment(settings: Settings) -> dict[str, str]:
    """This process's environment with the settings that a worker shares with the API."""
    shared = {
        "DATA_DIR": str(settings.data_dir),
        "DATABASE_URL": settings.database_url,
        "BROKER_URL": settings.broker_url,
    }
    return {**os.environ, **{f"STEWARD_{name}": value for name, value in shared.items()}}


class WorkerChild:
    """A worker as a child process, started again when it ends unasked.

    The thread that starts it lives as long as the child may: the kernel ends a child with the thread that made it.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._stopping = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._supervise, name="worker-supervisor", daemon=True)

    def start(self) -> None:
        """Start the worker."""
        self._thread.start()

    def stop(self) -> None:
        """Have it give its jobs back and end; after a while, end it."""
        self._stopping.set()
        process = self._process
        if process is not None and process.poll() is None:
            process.terminate()
        self._thread.join(STOP_SECONDS)
        if process is not None and process.poll() is None:
            logger.warning("the worker did not stop within %g s and is ended", STOP_SECONDS)
            process.kill()
            self._thread.join(STOP_SECONDS)

    def _command(self) -> list[str]:
        options = ["--concurrency", str(self._settings.workers), "--parent", str(os.getpid())]
        return [sys.executable, "-m", "workers", *options]

    def _supervise(self) -> None:
        pause = 1.0
        environment = worker_environment(self._settings)
        while not self._stopping.is_set():
            started = time.monotonic()
            self._process = subprocess.Popen(self._command(), env=environment, start_new_session=True)
            if self._stopping.is_set():
                self._process.terminate()
            status = self._process.wait()
            if self._stopping.is_set():
                return
            pause = 1.0 if time.monotonic() - started > LONGEST_PAUSE else min(2 * pause, LONGEST_PAUSE)
            logger.error("the worker ended with status %d; starting another in %g s", status, pause)
            self._stopping.wait(pause)
