"""Database engine, sessions, and the writer of reports."""

from __future__ import annotations

import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, make_url
from sqlalchemy.engine import URL
from sqlalchemy.engine.interfaces import DBAPIConnection, ExceptionContext
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.orm import Session
from sqlalchemy.pool import ConnectionPoolEntry

from app.settings import Settings

# The writer keeps a connection between batches of reports.


class Writer:
    """Transactions on one connection, kept between batches, as taking one from the pool costs as much as a write.

    An error or ``close`` releases the connection; the next transaction takes another. For one thread at a time.

    Args:
        engine: source of connections; with ``AUTOCOMMIT`` it commits each statement.
        failed: called with driver errors, which SQLAlchemy doesn't see.
    """

    def __init__(self, engine: Engine, failed: Callable[[BaseException], None]) -> None:
        self._engine, self._failed = engine, failed
        self._connection: Connection | None = None
        self._errors: Any = engine.dialect.loaded_dbapi.Error

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """Context manager: a transaction, committed at the end, rolled back on an exception."""
        try:
            connection = self._connected()
            yield connection
            connection.commit()
        except BaseException:
            self.close()
            raise

    @contextmanager
    def batch(self) -> Iterator[Any]:
        """Context manager: a transaction on the driver's own connection, which is faster; on PostgreSQL each statement
        commits itself. Raises SQLAlchemy's DBAPIError for errors of the driver."""
        try:
            driver: Any = self._connected().connection.driver_connection
            embedded = isinstance(driver, sqlite3.Connection)  # PostgreSQL commits each statement by itself
            if embedded:
                driver.execute("BEGIN IMMEDIATE")
            yield driver
            if embedded:
                driver.execute("COMMIT")
        except self._errors as error:
            raise self._as_dbapi_error(error) from error
        except BaseException:
            self.close()
            raise

    def _as_dbapi_error(self, error: Any) -> DBAPIError:
        """Convert the driver's ``error`` to SQLAlchemy's DBAPIError; a broken connection is discarded."""
        connection, dialect = self._connection, self._engine.dialect
        try:
            lost = connection is not None and dialect.is_disconnect(error, connection.connection, None)
            wrapped: DBAPIError = DBAPIError.instance(None, None, error, self._errors, connection_invalidated=lost)
            if connection is not None and lost:
                connection.invalidate(wrapped)
        finally:
            self.close()
        self._failed(wrapped)
        return wrapped

    def _connected(self) -> Connection:
        self._connection = self._connection or self._engine.connect()
        return self._connection

    def close(self) -> None:
        """Release the connection; uncommitted changes are rolled back."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


# Engine and sessions. Only `Database.session()` commits, and `Writer` for reports.


READING = "steward_reading"
DISK_FULL = "53100"
READ_ONLY = "25006"
CONTENDED = frozenset({"40P01", "55P03"})
FULL_SECONDS = 30.0
LEAST_FREE_BYTES = 4 << 20
AFTER_COMMIT = "steward_after_commit"
TOUCHED = "steward_touched"

commit_deadline: ContextVar[float | None] = ContextVar("commit_deadline", default=None)
"""Monotonic time after which a session must not commit, because its caller got a timeout; None: unlimited."""


class DeadlinePassed(TimeoutError):
    """A session was rolled back, because its caller's time limit was exceeded."""


def is_lost(error: BaseException) -> bool:
    """Whether the error means that the database is unreachable, read-only, locked, full, or out of connections."""
    original = error.orig if isinstance(error, DBAPIError) else None
    if (
        getattr(original, "sqlite_errorcode", None) == sqlite3.SQLITE_ERROR
    ):  # a wrong statement: SQLite calls it so, too
        return False
    if isinstance(error, OperationalError | InterfaceError | PoolTimeoutError):
        return True
    if getattr(original, "sqlstate", None) == READ_ONLY:  # a standby, or a database that is set so
        return True
    return isinstance(error, DBAPIError) and error.connection_invalidated


def is_contended(error: BaseException) -> bool:
    """Whether PostgreSQL aborted the transaction because of a deadlock or a lock timeout."""
    return isinstance(error, DBAPIError) and getattr(error.orig, "sqlstate", None) in CONTENDED


def is_full(error: BaseException) -> bool:
    """Whether the error means that the database's disk is full."""
    original = error.orig if isinstance(error, DBAPIError) else None
    code, state = getattr(original, "sqlite_errorcode", None), getattr(original, "sqlstate", None)
    return code == sqlite3.SQLITE_FULL or state == DISK_FULL


def after_commit(session: Session, call: Callable[[], None]) -> None:
    """Call ``call`` after this session's commit, and not if it is rolled back."""
    session.info.setdefault(AFTER_COMMIT, []).append(call)


def touch(session: Session, workload_id: str) -> None:
    """Pass a workload's id to the database's ``watchers`` after the commit, as its decisions may have changed."""
    session.info.setdefault(TOUCHED, set()).add(workload_id)


def normalised_url(url: str) -> URL:
    """The URL with the driver psycopg 3 for `postgres://` and `postgresql://`; raises ArgumentError if malformed."""
    parsed = make_url(url)
    if parsed.drivername in ("postgres", "postgresql"):
        return parsed.set(drivername="postgresql+psycopg")
    return parsed


def _configure_sqlite(engine: Engine, busy_seconds: float) -> None:
    """Set WAL mode, durable commits and foreign keys; writing sessions take the write lock at their beginning."""

    @event.listens_for(engine, "connect")
    def _connect(connection: Any, _record: Any) -> None:
        connection.isolation_level = None  # transactions are begun below, not by the driver
        cursor = connection.cursor()
        cursor.execute(f"PRAGMA busy_timeout={int(busy_seconds * 1000)}")
        cursor.execute("PRAGMA journal_mode=WAL")
        cursor.execute("PRAGMA synchronous=FULL")
        cursor.execute("PRAGMA foreign_keys=ON")
        cursor.close()

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        reading = connection.get_execution_options().get(READING, False)
        connection.exec_driver_sql("BEGIN" if reading else "BEGIN IMMEDIATE")


def check_deadline() -> None:
    """Check the current request's time limit; raises DeadlinePassed if it is exceeded."""
    deadline = commit_deadline.get()
    if deadline is not None and time.monotonic() > deadline:
        raise DeadlinePassed("the request took too long; nothing was written")


class Database:
    """A SQLite file or a PostgreSQL database, by URL; raises ArgumentError if that is malformed.

    `session()` commits at its end and rolls back on an exception. `reading()` never commits; on SQLite it takes no
    write lock.
    """

    def __init__(self, url: str, settings: Settings | None = None) -> None:
        settings = settings or Settings()
        self.url = normalised_url(url)
        options: dict[str, Any] = {"pool_size": settings.database_pool_size, "max_overflow": 0, "pool_timeout": 10}
        if self.is_sqlite:
            if self.url.database:
                Path(self.url.database).parent.mkdir(parents=True, exist_ok=True)
            options["connect_args"] = {"check_same_thread": False, "timeout": settings.sqlite_busy_seconds}
        else:
            # Timeouts at both ends: else who has vanished blocks or locks others for hours. ``options`` in the URL win.
            silence, own = settings.database_silence_seconds, self.url.query.get("options", "")
            alive = {"idle": max(silence // 2, 1), "interval": max(silence // 6, 1), "count": 3}
            theirs = {"lock_timeout": round(1000 * settings.database_lock_seconds), "tcp_user_timeout": 1000 * silence}
            theirs |= {f"tcp_keepalives_{name}": value for name, value in alive.items()}  # PostgreSQL's own side
            options["connect_args"] = {
                "options": " ".join([*(f"-c {name}={value}" for name, value in theirs.items()), str(own)]).rstrip(),
                "client_encoding": "utf8",  # a database of SQL_ASCII would give bytes, and no message
                "connect_timeout": settings.database_connect_seconds,
                "tcp_user_timeout": 1000 * silence,  # what was sent
                **{f"keepalives_{name}": value for name, value in alive.items()},  # and while an answer is waited for
            }
            options["pool_pre_ping"] = True
        self.engine = create_engine(self.url, **options)
        if self.is_sqlite:
            _configure_sqlite(self.engine, settings.sqlite_busy_seconds)
        self._reading_engine = self.engine.execution_options(**{READING: True})
        self.watchers: list[Callable[[set[str]], None]] = []
        """Called with the ids of the workloads that a unit of work of this process has changed, after its commit."""
        self._disposed = False
        self._full_until = 0.0
        event.listen(self.engine, "checkin", self._returned)
        event.listen(self.engine, "handle_error", self._failed)

    @property
    def is_sqlite(self) -> bool:
        """Whether this is SQLite, the embedded database."""
        return self.url.get_backend_name() == "sqlite"

    @contextmanager
    def session(self, *, in_time: bool = True) -> Iterator[Session]:
        """Context manager: a session, committed at the end, rolled back on an exception; objects stay readable
        afterwards.

        ``in_time``: raise DeadlinePassed instead of committing after `commit_deadline`; False for cleanup.
        """
        with Session(self.engine, expire_on_commit=False) as session:
            try:
                yield session
                if in_time:
                    check_deadline()
                session.commit()
            except BaseException:
                session.rollback()
                raise
        touched = session.info.pop(TOUCHED, None)
        for watcher in self.watchers if touched else ():
            watcher(touched)
        for call in session.info.pop(AFTER_COMMIT, ()):
            call()

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """Context manager: a read-only session; changes are rolled back. Loaded objects stay readable."""
        with Session(self._reading_engine, expire_on_commit=False, autoflush=False) as session:
            try:
                yield session
            finally:
                session.expunge_all()
                session.rollback()

    def writer(self) -> Writer:
        """A writer of batches; on PostgreSQL each of its statements commits itself."""
        single = self.engine if self.is_sqlite else self.engine.execution_options(isolation_level="AUTOCOMMIT")
        return Writer(single, self._noted)

    @property
    def disk_is_full(self) -> bool:
        """Whether a write failed on a full disk within 30 s, or SQLite's disk has less than 4 MiB free."""
        if time.monotonic() < self._full_until:
            return True
        if not self.is_sqlite or not self.url.database:
            return False
        return shutil.disk_usage(Path(self.url.database).absolute().parent).free < LEAST_FREE_BYTES

    def _failed(self, context: ExceptionContext) -> None:
        if context.sqlalchemy_exception is not None:
            self._noted(context.sqlalchemy_exception)

    def _noted(self, error: BaseException) -> None:
        """Remember for 30 s that the disk is full, if the error says so."""
        if is_full(error):
            self._full_until = time.monotonic() + FULL_SECONDS

    def dispose(self) -> None:
        """Close all connections; those in use are closed when released."""
        self._disposed = True
        self.engine.dispose()

    def _returned(self, connection: DBAPIConnection | None, record: ConnectionPoolEntry) -> None:
        """Close a connection released after `dispose`, which SQLAlchemy would leave to garbage collection."""
        if self._disposed and connection is not None:
            record.invalidate()
