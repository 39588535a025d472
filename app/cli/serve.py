"""`steward serve`: migrations, API and workers from one process, which leaves none behind."""

from __future__ import annotations

import contextlib
import ctypes
import ipaddress
import logging
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from multiprocessing.process import BaseProcess
from types import FrameType

import uvicorn

from app.database.base import utc_now
from app.database.engine import Database
from app.jobs import lease
from app.processes import is_gone
from app.settings import Settings

STOP_SECONDS = 15.0
GRACEFUL_SECONDS = 5
MALLOC_ARENA_MAX = -8  # glibc's M_ARENA_MAX
LONGEST_PAUSE = 30.0

logger = logging.getLogger(__name__)


class OpenAddress(ValueError):
    """The service refuses to listen beyond this machine as long as anybody may do anything."""


def check_address(host: str) -> None:
    """Without keys the service binds loopback only.

    Raises:
        OpenAddress: any other address.
    """
    if host == "localhost":
        return
    try:
        loopback = ipaddress.ip_address(host).is_loopback
    except ValueError:
        loopback = False
    if not loopback:
        raise OpenAddress(
            f"refusing to listen on {host!r}: there are no API keys, so anybody who reaches it could do anything; "
            "use 127.0.0.1 and put what authenticates in front of it"
        )


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


class Server(uvicorn.Server):
    """Uvicorn that says where it listens."""

    async def startup(self, sockets: list[object] | None = None) -> None:  # type: ignore[override]
        """Bind, then tell the address (the port may have been chosen by the system)."""
        await super().startup(sockets)  # type: ignore[arg-type]
        for server in self.servers:
            for socket in server.sockets:
                host, port = socket.getsockname()[:2]
                shown = f"[{host}]" if ":" in host else host
                print(f"Steward listens on http://{shown}:{port}", flush=True)


def migrate(url: str) -> None:
    """Bring the database up to date, in a process of its own: the API needs no Alembic in its memory.

    Raises:
        RuntimeError: it failed; the process has said why.
    """
    linux = sys.platform == "linux"
    start: type[BaseProcess] = multiprocessing.context.ForkProcess if linux else multiprocessing.context.SpawnProcess
    process = start(target=_upgrade, args=(url,), name="migrations")
    process.start()
    process.join()
    if process.exitcode != 0:
        raise RuntimeError(f"the database could not be migrated (exit status {process.exitcode})")


def _upgrade(url: str) -> None:
    from migrations.runner import upgrade

    upgrade(url)


def thrifty_memory() -> None:
    """Have threads share two heaps instead of having one each (glibc), which is what they'd cost most memory by."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):  # another C library: it has no such knob
            ctypes.CDLL(None).mallopt(MALLOC_ARENA_MAX, 2)


def serve(settings: Settings) -> None:
    """Serve until SIGTERM or Ctrl-C. Blocks.

    Raises:
        OpenAddress: the host is not loopback.
    """
    check_address(settings.host)
    logging.basicConfig(level=settings.log_level.upper(), format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("alembic").setLevel(logging.WARNING)
    settings.data_dir.mkdir(parents=True, exist_ok=True)
    thrifty_memory()
    migrate(settings.database_url)
    worker = WorkerChild(settings)
    if settings.workers:
        worker.start()  # it starts up while this process imports the API
    database = Database(settings.database_url, settings)
    server = Server(_configuration(settings, database))
    _stop_on_signals(server)
    try:
        lease.sweep(database, settings, utc_now(), is_gone)
        server.run()
    finally:
        if settings.workers:
            worker.stop()
        database.dispose()


def _stop_on_signals(server: Server) -> None:
    """A signal before the server runs stops it too; uvicorn raises it once more at its end, which changes nothing."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        server.should_exit = True

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)


def _configuration(settings: Settings, database: Database) -> uvicorn.Config:
    from app.http.protocol import header_timeout
    from app.main import create_app

    return uvicorn.Config(
        create_app(settings, database),
        host=settings.host,
        port=settings.port,
        http=header_timeout(settings.header_timeout_seconds),
        ws="none",
        access_log=False,
        log_level="warning",
        server_header=False,
        timeout_graceful_shutdown=GRACEFUL_SECONDS,
    )
