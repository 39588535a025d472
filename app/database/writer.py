"""A connection that is kept from batch to batch, for the thread that writes reports all day."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError


class Writer:
    """A unit of work like `Database.session()`, without taking a connection each time: that costs as much as it writes.

    It is given back by ``close``, soon after the last batch, and when a batch fails: so none is kept that the server
    may cut meanwhile. It serves one thread at a time.

    Args:
        engine: where connections come from; one with ``AUTOCOMMIT`` commits each statement by itself.
        failed: is told of errors that SQLAlchemy does not see itself.
    """

    def __init__(self, engine: Engine, failed: Callable[[BaseException], None]) -> None:
        self._engine, self._failed = engine, failed
        self._connection: Connection | None = None

    @property
    def is_sqlite(self) -> bool:
        """Whether it writes to the embedded database."""
        return self._engine.dialect.name == "sqlite"

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """Commits at the end, rolls back on an exception."""
        try:
            connection = self._connected()
            yield connection
            connection.commit()
        except BaseException:
            self.close()
            raise

    @contextmanager
    def batch(self) -> Iterator[Connection | sqlite3.Connection]:
        """The same; with SQLite by its driver alone, which is quicker, and whose errors are raised as SQLAlchemy's."""
        if not self.is_sqlite:
            with self.transaction() as connection:
                yield connection
            return
        try:
            driver: sqlite3.Connection = self._connected().connection.driver_connection  # type: ignore[assignment]
            driver.execute("BEGIN IMMEDIATE")
            yield driver
            driver.execute("COMMIT")
        except BaseException as error:
            self.close()
            if not isinstance(error, sqlite3.Error):
                raise
            told = DBAPIError.instance(None, None, error, sqlite3.Error)
            self._failed(told)
            raise told from error

    def _connected(self) -> Connection:
        self._connection = self._connection or self._engine.connect()
        return self._connection

    def close(self) -> None:
        """Give the connection back; what it has not committed is rolled back."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
