"""`steward serve`: the API process, its sockets, and its worker child."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import ipaddress
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from types import FrameType

import uvicorn

from app import installed, startup
from app.cli.server import data
from app.database.engine import Database
from app.jobs import lease
from app.processes import importing, is_gone
from app.settings import Settings
from app.startup import StartupError
from app.telemetry import logs

# The API's sockets are bound first, so that a port in use is reported at once.


def is_loopback(host: str) -> bool:
    """Whether the host name or address is reachable from this host only."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def check_address(settings: Settings) -> Settings:
    """The settings, changed to require keys if the address is beyond loopback.

    Raises:
        StartupError: the address is beyond loopback, and there are neither keys nor an identity provider.
    """
    if is_loopback(settings.host):
        return settings
    if settings.authentication != "required" and not settings.oidc_issuer and not has_keys(settings):
        raise StartupError(
            f"STEWARD_HOST={settings.host!r}: refusing to listen there: there are no API keys, so anybody who reaches "
            f"it could do anything; make one (steward key create --scopes admin --data {settings.data_dir}), or use "
            "127.0.0.1"
        )
    return settings.model_copy(update={"authentication": "required"})


def has_keys(settings: Settings) -> bool:
    """Whether a key was ever created; False if the database can't be read. Creates nothing."""
    from sqlalchemy.exc import SQLAlchemyError

    from app.database.engine import Database, normalised_url
    from app.keys import ring

    url = normalised_url(settings.database_url)
    if url.get_backend_name() == "sqlite" and not Path(url.database or "").is_file():
        return False
    database = Database(settings.database_url, settings)
    try:
        with database.reading() as session:
            return ring.fingerprint(session).created > 0
    except SQLAlchemyError:  # no table yet; other problems are reported when the database is used
        return False
    finally:
        database.dispose()


def bind(settings: Settings) -> list[socket.socket]:
    """Bound sockets that don't listen yet, one for each address of the host.

    Raises:
        StartupError: the port is in use or forbidden, or the host has no such address.
        OSError: the host's name can't be resolved.
    """
    address_families: dict[str, socket.AddressFamily] = {}
    for version, _, _, _, address in socket.getaddrinfo(settings.host, settings.port, type=socket.SOCK_STREAM):
        address_families.setdefault(str(address[0]), version)
    bound: list[socket.socket] = []
    for host, family in address_families.items():
        listener = _bound(family, host, settings.port)
        if listener is not None:
            bound.append(listener)
    if not bound:
        raise StartupError(f"STEWARD_HOST={settings.host!r}: this machine has no such address; use 127.0.0.1")
    return bound


def _bound(family: socket.AddressFamily, host: str, port: int) -> socket.socket | None:
    """A bound socket, None if this host lacks the address; raises StartupError if the port is in use."""
    try:
        listener = socket.socket(family, socket.SOCK_STREAM)
    except OSError:
        return None
    try:
        if os.name == "posix":
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRNOTAVAIL:
            return None
        raise StartupError(refusal(host, port, error)) from error
    return listener


def refusal(host: str, port: int, error: OSError) -> str:
    """Message about a port that can't be used, with a remedy."""
    remedy = "stop what listens there, or choose another (--port; 0 takes a free one)"
    return f"STEWARD_PORT={port}: {os.strerror(error.errno or 0).lower()} on {host}; {remedy}"


# The worker that `steward serve` starts, a child process.


STOP_SECONDS = 15.0
LONGEST_PAUSE = 30.0

logger = logging.getLogger(__name__)


class WorkerChild:
    """A worker as a child process, which is restarted when it ends unexpectedly.

    The starting thread lives as long as the child, because the kernel ends a child with the thread that made it.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._stopping = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._supervise, name="worker-supervisor", daemon=True)

    def start(self) -> None:
        """Start the supervising thread; doesn't wait for the worker."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the worker, which releases its jobs; it is killed after 15 s."""
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
        # This process's environment with the settings that a worker shares with the API
        shared = {
            "DATA_DIR": str(self._settings.data_dir),
            "DATABASE_URL": self._settings.database_url,
            "BROKER_URL": self._settings.broker_url,
        }
        environment = {**os.environ, **{f"STEWARD_{name}": value for name, value in shared.items()}}
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


# The API server on bound sockets, with the worker beside it.


GRACEFUL_SECONDS = 5


class Server(uvicorn.Server):
    """Uvicorn server that prints its addresses."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start listening and print the addresses, as the system may have chosen the port."""
        await super().startup(sockets)
        for server in self.servers:
            for listener in server.sockets:
                host, port = listener.getsockname()[:2]
                shown = f"[{host}]" if ":" in host else host
                print(f"Steward listens on {'https' if self.config.is_ssl else 'http'}://{shown}:{port}", flush=True)


def run(settings: Settings, sockets: list[socket.socket]) -> None:
    """Serve until SIGTERM or Ctrl-C; blocks.

    Raises:
        StartupError: the sockets can't listen.
    """
    worker = WorkerChild(settings)
    database = Database(settings.database_url, settings)
    try:
        if settings.workers:
            worker.start()  # it starts up while this process imports the API
        server = Server(configuration(settings, database))
        _stop_on_signals(server)
        lease.sweep(database, settings, is_gone)
        # Accept connections from now on; another process may have taken the port since it was bound
        for one in sockets:
            try:
                one.listen()
            except OSError as error:
                raise StartupError(refusal(settings.host, settings.port, error)) from error
        server.run(sockets)
    finally:
        if settings.workers:
            worker.stop()
        database.dispose()


def _stop_on_signals(server: Server) -> None:
    """Let signals stop the server even before it runs; uvicorn raises them once more at its end, without effect."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        server.should_exit = True

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)


def configuration(settings: Settings, database: Database) -> uvicorn.Config:
    """Uvicorn's configuration of the API."""
    with importing():
        from app.http.protocol import protocol
        from app.main import create_app, tune_garbage_collection

        application = create_app(settings, database).gateway
    tune_garbage_collection()
    return uvicorn.Config(
        application,
        host=settings.host,
        port=settings.port,
        http=protocol(settings.header_timeout_seconds),
        ws="none",
        access_log=False,
        log_config=None,  # its lines go where ours do
        log_level="warning",
        server_header=False,
        proxy_headers=bool(settings.trusted_proxies),
        forwarded_allow_ips=list(settings.trusted_proxies),
        ssl_certfile=settings.tls_certificate,
        ssl_keyfile=settings.tls_key,
        timeout_graceful_shutdown=GRACEFUL_SECONDS,
    )


# `steward serve`: order of start and end; slow imports come after the first message.


M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8  # glibc's parameters
LARGE_BLOCK = 1 << 20


def say(line: str) -> None:
    """Print a line about the progress of the start to standard output."""
    print(line, flush=True)


def serve(settings: Settings) -> None:
    """Serve until SIGTERM or Ctrl-C; blocks.

    Raises:
        StartupError: it can't start; everything started before is ended.
        KeyboardInterrupt: Ctrl-C or SIGTERM during the start.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    settings = check_address(settings)
    lacking = bool(settings.workers and installed.missing("worker"))
    if lacking:
        if "workers" in settings.model_fields_set:
            startup.check_learning("a worker", ", or leave workers to others: steward serve --workers 0")
        settings = settings.model_copy(update={"workers": 0})
    logs.configure(settings)
    with ExitStack() as stack:
        sockets = bind(settings)
        for one in sockets:
            stack.enter_context(closing(one))
        startup.check_folder(settings.data_dir)
        stack.enter_context(_lock_data_folder(settings))
        say(f"Steward starts: data in {settings.data_dir}; {_workers(settings)}")
        if lacking:
            say(f"steward serve: fits and trainings wait for a worker: {installed.command('worker')} starts one here")
        if not (is_loopback(settings.host) or settings.tls_certificate or settings.trusted_proxies):
            say("steward serve: warning: keys travel unencrypted; set STEWARD_TLS_CERTIFICATE, or name a proxy")
        # Check database and broker, and migrate the tables
        tune_malloc()
        startup.check(settings, creates=True)
        from app.cli.server.data import migrate

        migrate(settings)
        problem = startup.broker_problem(settings)
        if problem is not None:  # decisions need none, and jobs wait in the database
            say(f"steward serve: warning: {problem}")

        run(settings, sockets)


def _workers(settings: Settings) -> str:
    if settings.workers == 0:
        return "no worker of its own (jobs wait for `steward worker`)"
    return f"{settings.workers} worker process{'es' if settings.workers > 1 else ''}"


@contextmanager
def _lock_data_folder(settings: Settings) -> Iterator[None]:
    """Context manager: lock the data folder if the service stores data in it; APIs without workers may share it. Raises
    StartupError if another process holds the lock."""
    if not settings.embedded:
        yield
    elif settings.workers:
        with data.exclusive(settings.data_dir, say):
            yield
    else:
        holder = data.holder(settings.data_dir)
        if holder is not None:
            say(f"one more API beside process {holder}, which serves {settings.data_dir} too")
        yield


def tune_malloc() -> None:
    """Limit glibc to two heaps for all threads, and return large freed blocks to the system.

    By default each heap would keep up to 32 MiB after a large upload.
    """
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):  # another C library: it has no such knobs
            mallopt = ctypes.CDLL(None).mallopt
            mallopt(M_ARENA_MAX, 2)
            mallopt(M_MMAP_THRESHOLD, LARGE_BLOCK)
            mallopt(M_TRIM_THRESHOLD, LARGE_BLOCK)
